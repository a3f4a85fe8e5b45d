# From the PVH entry point, where the processor has flat 32-bit segments and no paging (Xen,
# docs/misc/pvh: "x86/HVM direct boot ABI"), to 64-bit code: the first GiB mapped to itself in pages
# of 2 MiB, a stack of STACK_LEN bytes, and `start`. What lies in .bss is zero here.

    .section .note.pvh, "a", @note
    .balign 4
    .long 4                         # length of the name
    .long 8                         # length of the address
    .long 18                        # XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad enter

    .section .bss.boot, "aw", @nobits
    .balign 4096
page_map:
    .skip 4096
page_pointers:
    .skip 4096
page_directory:
    .skip 4096
    .global stack_bottom
stack_bottom:
    .skip {STACK_LEN}
stack_top:

    .section .rodata.boot, "a"
    .balign 8
segments:
    .quad 0
    .quad 0x00af9a000000ffff        # 0x08: code, 64 bits
    .quad 0x00cf92000000ffff        # 0x10: data
segments_end:
segment_table:
    .word segments_end - segments - 1
    .long segments

    .section .text.boot, "ax"
    .code32
    .global enter
enter:
    cld
    movl $stack_top, %esp

    movl $page_directory, %edi
    movl $0x83, %eax                # present, writable, 2 MiB
1:  movl %eax, (%edi)
    addl $8, %edi
    addl $0x200000, %eax
    cmpl $page_directory + 4096, %edi
    jne 1b
    movl $page_directory + 3, page_pointers
    movl $page_pointers + 3, page_map
    movl $page_map, %eax
    movl %eax, %cr3

    movl %cr4, %eax
    orl $0x20, %eax                 # PAE
    movl %eax, %cr4
    movl $0xc0000080, %ecx          # EFER
    rdmsr
    orl $0x100, %eax                # LME
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax           # PG
    movl %eax, %cr0

    lgdt segment_table
    ljmp $0x08, $enter_long

    .code64
enter_long:
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %ebp, %ebp
    call start
    ud2

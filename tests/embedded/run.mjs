// The two Wasm modules under Node: the guest is wired to the ports of the card, and the card's
// network to a host of JavaScript. Prints what the guest says, and PASS or FAIL.
//
//     node run.mjs NIC.wasm GUEST.wasm

import { readFileSync } from "node:fs";
import { Server } from "./server.mjs";

const [nicPath, guestPath] = process.argv.slice(2);
const RUNNING = 0, PASSED = 1;

function load(path, imports) {
    const module = new WebAssembly.Module(readFileSync(path));
    return new WebAssembly.Instance(module, imports).exports;
}

function text(memory, at, length) {
    return new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
}

function report(memory, at, length, value) {
    console.log(`nic        ${text(memory, at, length).padEnd(34)} ${String(value).padStart(8)}`);
}

function run() {
    const server = new Server(() => nic.memory);
    const nic = load(nicPath, {
        host: { ...server.imports(), report: (...values) => report(nic.memory, ...values) },
    });
    const card = nic.nic_start();
    const guest = load(guestPath, {
        card: {
            read: (offset, width) => nic.nic_read(card, offset, width),
            write: (offset, width, value) => nic.nic_write(card, offset, width, value),
        },
        console: { print: (at, length) => process.stdout.write(text(guest.memory, at, length)) },
    });
    const self = guest.guest_start();
    if (!card || !self) return false;
    nic.nic_report_memory();

    let now = 0n;
    let answer;
    while ((answer = guest.guest_poll(self, now)) === RUNNING) {
        now = nic.nic_next_time(card, now, guest.guest_poll_at(self, now));
        nic.nic_turn(card, now);
    }
    guest.guest_report(self);
    const fine = nic.nic_finish(card);
    return answer === PASSED && fine;
}

const passed = run();
console.log(passed ? "PASS" : "FAIL");
process.exitCode = passed ? 0 : 1;

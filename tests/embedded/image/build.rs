//! Links the image where `image.ld` puts it, not as a program that may lie anywhere.

fn main() {
    println!("cargo::rerun-if-changed=image.ld");
    let folder = env!("CARGO_MANIFEST_DIR");
    println!("cargo::rustc-link-arg-bins=--script={folder}/image.ld");
    println!("cargo::rustc-link-arg-bins=--no-pie");
}

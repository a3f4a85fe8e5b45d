//! The slirpkit program.

mod cli;
mod netns;

fn main() -> std::process::ExitCode {
    cli::main()
}

//! The binary `pronto`.

fn main() -> std::process::ExitCode {
    pronto_cli::main()
}

import ArgumentParser

@main
struct SheafSidecarCommand: AsyncParsableCommand {
  func run() async throws {}
}

import ArgumentParser
import SheafSidecar

struct Resume: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Have sinks go on that are disabled, since their endpoint said that it is gone (410).")

  @OptionGroup var files: FileOptions

  func run() throws {
    let path = try files.stateOfSidecar()
    let names = try SidecarState(path: path).resume()
    _ = SidecarProcess.poke(path)
    print(names.isEmpty ? "No sink is disabled." : "Resumed: " + names.joined(separator: ", "))
  }
}

import ArgumentParser
import Glibc
import SheafHubClient
import SheafModel

struct Connect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make this machine a device of an account of a hub, whose events --hub delivers.",
    discussion: """
      The link is what `sheaf-hub account add`, `sheaf-hub account link` or another device printed. It is good once, and \
      for a day. On a command line everyone who may list processes sees it; with - it is read from standard input.

      The machine's key is made here, and never leaves it. Whoever can read its file is the device. If the command is \
      interrupted, run it again with the same link.
      """)

  @Argument(help: ArgumentHelp("The enrolment link, in quotes; - for standard input.", valueName: "link"))
  var link: String

  @Option(help: ArgumentHelp("What people call this machine (default: its host name).", valueName: "name"))
  var name: String?

  @OptionGroup var device: DeviceOption

  func run() async throws {
    let text = link == "-" ? readLine() ?? "" : link
    let file = DeviceFile(try device.path())
    let made = try await DeviceClient.enroll(by: try Enrolment(text), name: name ?? Self.hostName(), file: file)
    // That it can begin a session shows that everything is well.
    let client = DeviceClient(made)
    do {
      _ = try await client.account()
    } catch {
      await client.shutdown()
      throw error
    }
    await client.shutdown()
    print("This machine is a device of \(made.handle) at \(made.hub), by \(file.path.printable).")
  }

  private static func hostName() -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    gethostname(&buffer, buffer.count - 1)
    let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let short = String(decoding: Array(name.escapingControls.utf8.prefix(DeviceClient.longestName)), as: UTF8.self)
    return short.isEmpty || short.utf8.count > DeviceClient.longestName ? "sidecar" : short
  }
}

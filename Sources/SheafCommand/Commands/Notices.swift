import ArgumentParser
import Glibc
import SheafClient
import SheafModel

struct Notices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what others did since you looked last.",
    discussion: """
      Latest first. What you did yourself is not among it. They stay until they are cleared.

      Examples:
        sheaf notices
        sheaf notices --clear          prints them a last time
        sheaf notices --as bob@example.com --json
      """)

  @Flag(help: "Clear what is printed.")
  var clear = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(optional: nil, library, changing: clear) { target in
      let list = try await target.client.notices(target.address)
      if output.json {
        try JSON.write(list.notices)
      } else if list.notices.isEmpty {
        try StandardOutput.line("Nothing new.")
      } else {
        let now = Timestamp.now
        for notice in list.notices {
          try StandardOutput.line("\(notice.text), \(notice.time.ago(at: now))".escapingControls)
        }
      }
      if clear { try await target.client.clearNotices(target.address, through: list.through) }
    }
  }
}

extension Timestamp {
  /// CLOCK_REALTIME.
  static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }
}

import ArgumentParser
import SheafClient
import SheafModel

struct Activity: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what happened to what you can see.",
    discussion: """
      Without PATH in everything; with PATH in that item and what is below it. Oldest first.

      Examples:
        sheaf activity
        sheaf activity ~/Sheaf/Documents/Plans --follow
        sheaf activity --json                        CloudEvents
      """)

  @Argument(help: "A document or folder.")
  var path: PathArgument?

  @Flag(help: "Go on and print what happens, until interrupted; with --json an event on each line.")
  var follow = false

  @Option(help: "How many events to look back.")
  var limit = 50

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...1000).contains(limit) else { throw ValidationError("--limit is a number from 1 to 1000") }
  }

  func run() async throws {
    try await ItemTarget.with(optional: path, library) { target in
      let events = try await target.client.latestEvents(target.address, limit: limit)
      guard follow else { return try show(events) }
      guard !target.connection.isOwn else {
        throw SheafError(
          .unavailable, subject: target.connection.info.library, reason: "nothing happens while no process has it open",
          advice: "mount it first: sheaf mount")
      }
      for event in events { try line(event) }
      var position = events.last?.sequence
      if position == nil {
        // From the log's end on, where nothing has happened yet.
        position = try await target.client.notices(ItemAddress(account: target.address.account, path: nil)).through
      }
      var stream = try await target.client.follow(.account(target.address), after: position)
      while let element = try await stream.next() {
        if case .event(let event, _) = element { try line(event) }
      }
    }
  }

  private func show(_ events: [Event]) throws {
    if output.json { return try JSON.write(events) }
    guard !events.isEmpty else { return try StandardOutput.line("Nothing happened yet.") }
    var table = Table([("TIME", .left), ("WHAT", .left), ("PATH", .left)])
    for event in events { table.append([Format.time(event.time), event.sentence(), event.data.item.path]) }
    try StandardOutput.write(table.text)
  }

  private func line(_ event: Event) throws {
    if output.json { return try JSON.writeLine(event) }
    try StandardOutput.line("\(Format.time(event.time))  \(event.sentence().escapingControls)")
  }
}

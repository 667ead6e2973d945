import ArgumentParser
import SheafClient
import SheafModel

struct Activity: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what happened to what you can see.",
    discussion: """
      Without PATH in everything; with PATH in that item and what is below it. Oldest first, with the path where the item is \
      now, as commands take it, or where it was when it was deleted.

      Examples:
        sheaf activity
        sheaf activity ~/Sheaf/Documents/Plans --follow
        sheaf activity --json                        CloudEvents
      """)

  @Argument(help: "A document or folder.")
  var path: PathArgument?

  @Flag(
    help: """
      Go on and print what happens, until interrupted, also when the library is mounted anew meanwhile; with --json an \
      event on each line.
      """)
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
      guard follow else {
        let events = try await target.client.latestEvents(target.address, limit: limit)
        if output.json { return try JSON.write(events) }
        let ids = Set(events.map(\.data.item.id))
        try show(events, try await target.client.paths(of: Array(ids), for: target.address.account))
        if !events.isEmpty, let advice = await target.pathAdvice() { try StandardOutput.line(advice) }
        return
      }
      guard !target.connection.isOwn else {
        throw SheafError(
          .unavailable, subject: target.connection.info.library, reason: "nothing happens while no process has it open",
          advice: "mount it first: sheaf mount")
      }
      let end = try await target.client.events(.account(target.address), after: nil, limit: 1).last
      let events = try await target.client.latestEvents(target.address, limit: limit)
      for event in events { try line(event) }
      var position = end
      // Those that came since `end`.
      let told = Set(events.map(\.id))
      while true {
        do {
          try await print(from: &position, told, target)
        } catch let error as SheafError where error.kind == .unavailable {}
        try await waitForProcess(target)
      }
    }
  }

  /// Prints events after a position, and moves the position on, until the process that owns the library ends.
  ///
  /// - Parameter told: Ids of events that are printed already.
  private func print(from position: inout Int64, _ told: Set<String>, _ target: ItemTarget) async throws {
    var stream = try await target.client.follow(.account(target.address), after: position)
    while let element = try await stream.next() {
      switch element {
      case .event(let event, _):
        if !told.contains(event.id) { try line(event) }
        position = event.position
      case .position(let number): position = number
      case .silence: break
      }
    }
  }

  /// Seconds between two attempts to find the next process, at first and at most.
  private static let waits = (first: 0.05, longest: 1.0)

  private func waitForProcess(_ target: ItemTarget) async throws {
    var wait = Self.waits.first
    while true {
      do {
        _ = try await target.client.info(within: .seconds(5))
        return
      } catch let error as SheafError where error.kind == .unavailable {}
      try await Task.sleep(for: .seconds(wait))
      wait = min(wait * 2, Self.waits.longest)
    }
  }

  /// - Parameter paths: The paths of the items, by their ids.
  private func show(_ events: [Event], _ paths: [String: String]) throws {
    guard !events.isEmpty else {
      return try StandardOutput.line("Nothing to show yet. What was just done appears within 15 seconds.")
    }
    let tellsDevices = events.contains { $0.data.device != nil }
    var table = Table(
      [("TIME", .left)] + (tellsDevices ? [("DEVICE", .left)] : []) + [("WHAT", .left), ("PATH", .left)])
    for event in events {
      table.append(
        [Format.time(event.time)] + (tellsDevices ? [event.data.device?.name ?? ""] : [])
          + [Self.sentence(event), paths[event.data.item.id].map { Format.path($0, id: event.data.item.id) } ?? ""])
    }
    try StandardOutput.write(table.text)
  }

  private func line(_ event: Event) throws {
    if output.json { return try JSON.writeLine(event) }
    let device = event.data.device.map { " (\($0.name))" } ?? ""
    try StandardOutput.line("\(Format.time(event.time))  \((Self.sentence(event) + device).escapingControls)")
  }

  private static func sentence(_ event: Event) -> String {
    event.sentence() + (event.isWaiting ? " (waits for the hub)" : "")
  }
}

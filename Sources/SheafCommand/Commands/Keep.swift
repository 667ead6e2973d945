import ArgumentParser
import SheafClient
import SheafModel

struct Keep: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Keep the contents of documents on this machine.",
    discussion: """
      What is below PATH comes to this machine and stays, also what is made there later. It waits until all of it is here; \
      Ctrl-C ends the waiting alone. Without a network it comes later. Other documents come when a program reads them, and \
      go again, if the library has a limit: `sheaf library set --cache 10G`. Without a limit everything comes.

      Examples:
        sheaf keep ~/Sheaf/Documents/Contracts
        sheaf keep ~/Sheaf/Documents/Contracts --default      as the folder around it
      """)

  /// How often it looks at first, and at last.
  private static let pauses = (first: Duration.milliseconds(200), longest: Duration.seconds(2))

  @Argument(help: "A document or a folder of a connected account.")
  var path: PathArgument

  @Flag(name: .customLong("default"), help: "Say nothing any more: the folder around it, or the library, decides.")
  var isDefault = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let (facts, reason) = try await ItemTarget.with(path, library, changing: true) {
      (target: ItemTarget) async throws -> (LocalContents, String?) in
      let line = ProgressLine("Keeping")
      defer { line.clear() }
      var facts = try await target.client.keep(target.address, isDefault ? nil : true) { _ in }
      var pause = Self.pauses.first
      while !isDefault, facts.absentDocuments > facts.freedDocuments {
        if let reason = try await Self.delay(target) { return (facts, reason) }
        line.show("\(facts.absentDocuments) documents and \(Format.size(facts.absentBytes)) left")
        try await Task.sleep(for: pause)
        pause = min(pause * 2, Self.pauses.longest)
        facts = try await target.client.localContents(of: target.address) { _ in }
      }
      return (facts, nil)
    }
    if output.json { return try JSON.write(facts) }
    let documents = Format.count(Int(facts.documents), "document")
    if isDefault {
      try StandardOutput.line("\(facts.path) says nothing of what is kept here any more.".escapingControls)
    } else if let reason {
      try StandardOutput.line(
        "\(facts.path) is kept here: \(Format.size(facts.absentBytes)) of \(documents) come \(reason)."
          .escapingControls)
    } else {
      try StandardOutput.line(
        "\(facts.path) is kept here: \(documents) of \(Format.size(facts.bytes)).".escapingControls)
      if facts.freedDocuments > 0 {
        let freed = Format.count(Int(facts.freedDocuments), "document")
        try StandardOutput.line("\(freed) in it stay freed: take that back with sheaf keep PATH --default.")
      }
    }
  }

  /// Why nothing comes for now; nil if it does.
  private static func delay(_ target: ItemTarget) async throws -> String? {
    if target.connection.isOwn { return "while the library is mounted" }
    let connections = try await target.client.connections()
    return connections.contains { $0.state == .connected && !$0.isPaused } ? nil : "once the hub is reached"
  }
}

struct Free: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Give back what the contents of documents take on this machine.",
    discussion: """
      The documents below PATH stay, with names, sizes, times and all else that the mount shows. Their contents stay \
      at the hub, and come back when a program reads them, which needs the hub. What a program has open stays here, and so \
      does what the hub does not have, or has had for less than a day.

      Examples:
        sheaf free ~/Sheaf/Documents/Films
      """)

  @Argument(help: "A document or a folder of a connected account.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let freed = try await ItemTarget.with(path, library, changing: true) { target in
      try await ProgressLine.during("Freeing") {
        try await target.client.freeContents(of: target.address, progress: $0)
      }
    }
    if output.json { return try JSON.write(freed) }
    if freed.documents > 0 {
      try StandardOutput.line(
        "Freed \(Format.size(freed.bytes)) of \(Format.count(Int(freed.documents), "document")) in \(freed.path)."
          .escapingControls)
    } else {
      try StandardOutput.line("Nothing was freed in \(freed.path).".escapingControls)
    }
    for (count, reason) in [
      (freed.open, "open"), (freed.unsent, "not at the hub yet"),
      (freed.recent, "at the hub for less than a day, and freed after that if the library has a limit"),
    ] where count > 0 {
      try StandardOutput.line("\(Format.count(Int(count), "document")) stayed: \(reason).")
    }
  }
}

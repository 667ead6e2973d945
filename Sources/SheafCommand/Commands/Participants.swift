import ArgumentParser
import SheafClient
import SheafModel

struct Participants: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List who takes part in a share.",
    discussion: """
      Example:
        sheaf participants ~/Sheaf/Documents/plans
      """)

  @Argument(help: "A shared item, or one in a share.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let people = try await ItemTarget.with(path, library) { try await $0.client.participants($0.address) }
    if output.json { return try JSON.write(people) }
    var table = Table([("HANDLE", .left), ("NAME", .left), ("ROLE", .left), ("CAN", .left), ("STANDING", .left)])
    for person in people {
      table.append([
        person.handle.description, person.name, person.role.word, person.permission.word, person.acceptance.word,
      ])
    }
    try StandardOutput.write(table.text)
  }
}

struct ParticipantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "participant", abstract: "Add, change or remove people of a share.",
    discussion: """
      Examples:
        sheaf participant add ~/Sheaf/Documents/plans carol@example.com --can view
        sheaf participant set ~/Sheaf/Documents/plans carol@example.com --role administrator
        sheaf participant remove ~/Sheaf/Documents/plans carol@example.com
      """, subcommands: [Add.self, Set.self, Remove.self])

  /// The arguments of both `add` and `set`.
  struct Change: ParsableArguments {
    @Argument(help: "The shared item.")
    var path: PathArgument

    @Argument(help: "Who.", completion: Completions.people)
    var handle: String

    @Option(help: ArgumentHelp("What they may do.", valueName: "view|edit"))
    var can: Can?

    @Option(help: ArgumentHelp("Administrators add and remove people.", valueName: "administrator|participant"))
    var role: GivenRole?

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    /// Makes the library change the participant, and prints the outcome.
    func make(
      _ call: (SheafClient, ItemAddress, ParticipantChange) async throws -> Participant
    ) async throws {
      let change = ParticipantChange(handle: try AccountHandle(handle), permission: can?.permission, role: role?.role)
      try await ItemTarget.with(path, library, changing: true) { target in
        let before = try? await target.client.participants(target.address).first { $0.handle == change.handle }
        let person = try await call(target.client, target.address, change)
        if output.json { return try JSON.write(person) }
        let standing = "\(person.handle) is \(person.role.article) of \(target.name), and can \(person.permission.word)"
        guard before != person else { return try StandardOutput.line("Nothing changed: \(standing).".escapingControls) }
        let isInvited = person.acceptance == .pending && before?.acceptance != .pending
        let joining = isInvited ? "; invited: `sheaf shares` of theirs tells the link" : ""
        try StandardOutput.line("\(standing)\(joining).".escapingControls)
      }
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Invite someone.", discussion: "Someone who is there already gets what is asked, and nothing else.")

    @OptionGroup var change: Change

    func run() async throws { try await change.make { try await $0.addParticipant($1, $2) } }
  }

  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Change what someone may do.")

    @OptionGroup var change: Change

    func run() async throws { try await change.make { try await $0.setParticipant($1, $2) } }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Take someone out.",
      discussion: "It is gone from their mounts at once, from files that they have open too.")

    @Argument(help: "The shared item.")
    var path: PathArgument

    @Argument(help: "Who.", completion: Completions.participants)
    var handle: String

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let handle = try AccountHandle(handle)
      try await ItemTarget.with(path, library, changing: true) { target in
        try await target.client.removeParticipant(target.address, handle)
        if output.json { return try JSON.write(MemberOutput(path: target.given, handle: handle)) }
        try StandardOutput.line("\(handle) takes no part in \(target.name) any more.".escapingControls)
      }
    }
  }
}

/// A role that people can be given.
enum GivenRole: String, ExpressibleByArgument, CaseIterable {
  case administrator, participant
  /// A participant, as JSON and `user.sheaf.*` call it.
  case privateUser

  static let allValueStrings = [administrator, participant].map(\.rawValue)

  var role: Role { self == .administrator ? .administrator : .privateUser }
}

extension Role {
  /// The word for people.
  var word: String {
    switch self {
    case .owner: "owner"
    case .administrator: "administrator"
    case .privateUser: "participant"
    case .publicUser: "joined by the link"
    }
  }

  /// As in `bob is …`.
  fileprivate var article: String {
    switch self {
    case .owner: "the owner"
    case .administrator: "an administrator"
    case .privateUser, .publicUser: "a participant"
    }
  }
}

extension Acceptance {
  /// The word for people.
  var word: String {
    switch self {
    case .pending: "invited"
    case .accepted: "joined"
    case .removed: "removed"
    }
  }
}

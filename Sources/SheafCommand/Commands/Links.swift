import ArgumentParser
import SheafClient
import SheafModel

/// A link, and the account that asks about it.
struct LinkOptions: ParsableArguments {
  @Argument(help: "A share URL.")
  var url: String

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  /// Sends the link to the library, and returns the answer.
  ///
  /// - Parameter changing: As of ``ItemTarget/with(_:_:changing:body:)``.
  func ask<Answer>(
    changing: Bool = false, _ question: (SheafClient, String, AccountHandle?) async throws -> Answer
  ) async throws -> Answer {
    try await ItemTarget.with(optional: nil, library, changing: changing) {
      try await question($0.client, url, $0.address.account)
    }
  }
}

struct Inspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what a link offers.",
    discussion: """
      Example:
        sheaf inspect sheaf://5f0c…/s/tK3… --as bob@example.com
      """)

  @OptionGroup var link: LinkOptions

  func run() async throws {
    let offer = try await link.ask { try await $0.inspect($1, as: $2) }
    if link.output.json { return try JSON.write(offer) }
    let joining =
      offer.path.map { "you take part: \($0)" }
      ?? (offer.asksFirst ? "the owner is asked first" : "join with: sheaf accept URL")
    var facts = [
      ("Title", offer.title), ("Kind", offer.kind), ("Owner", "\(offer.owner) (\(offer.ownerName))"),
      ("You can", offer.permission.word), ("Joining", joining),
    ]
    if let end = offer.expires { facts.append(("Link", Format.linkEnd(end))) }
    facts += offer.warnings.map { ("Beware", $0) }
    try StandardOutput.write(Table.facts(facts).text)
  }
}

struct Accept: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Join what a link offers, or take over what is given to you.",
    discussion: """
      Joins by an invitation, by what anyone with the link may do, or by a one-time link. Where none of these is yours \
      and the share lets people ask, its owner is asked. An item that somebody gives you with `sheaf transfer` is named \
      by its id: it moves to your Documents, and is yours from then on.

      Examples:
        sheaf accept sheaf://5f0c…/s/tK3… --as bob@example.com
        sheaf accept id:0197c1f0-5d3e-7a51-9c3f-6a4a4e2f7c10
      """)

  @OptionGroup var link: LinkOptions

  func run() async throws {
    let (result, isSame) = try await link.ask(changing: true) { client, url, account in
      if let id = TransferCommand.id(url) { return (try await client.acceptTransfer(id, as: account), false) }
      let offer = try await client.inspect(url, as: account)
      let former = try await client.shares(of: account).ownRequests
      let result = try await client.accept(url, as: account)
      guard result.requested, former.contains(where: { $0.title == offer.title && $0.owner == offer.owner }) else {
        return (result, offer.path != nil)
      }
      return (result, try await client.shares(of: account).ownRequests == former)
    }
    if link.output.json { return try JSON.write(result) }
    for warning in result.warnings { StandardError.write("sheaf: beware: \(warning.escapingControls)\n") }
    guard let path = result.path else {
      guard result.requested else {
        return try StandardOutput.line("Joined. It shows under Shared once it is here.")
      }
      return try StandardOutput.line(
        (isSame ? "Nothing changed: you asked for access already." : "Asked for access.")
          + " It shows under Shared once the owner approves.")
    }
    try StandardOutput.line(path.escapingControls)
    // The path alone is what scripts read.
    if isSame { StandardError.write("sheaf: nothing changed: you take part in it already\n") }
  }
}

struct Invite: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a link for one person whose handle is not known.",
    discussion: """
      The first account that accepts it joins; it dies after seven days, and when it is revoked. Whoever has a handle is \
      invited with `sheaf share --with`.

      Examples:
        sheaf invite ~/Sheaf/Documents/plans --one-time --can view
        sheaf invite ~/Sheaf/Documents/plans --revoke       those that nobody claimed
      """)

  @Argument(help: "A shared item.")
  var path: PathArgument

  @Flag(help: "Make a one-time link.")
  var oneTime = false

  @Flag(help: "Revoke the one-time links that nobody claimed.")
  var revoke = false

  @Option(help: ArgumentHelp("What they may do (default: as the share has it).", valueName: "view|edit"))
  var can: Can?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if oneTime == revoke { throw ValidationError("Give one of --one-time and --revoke.") }
  }

  func run() async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      if revoke {
        let count = try await target.client.revokeOneTimeLinks(target.address).revoked
        if output.json { return try JSON.write(RevokedOutput(path: target.given, revoked: count)) }
        let name = target.name.escapingControls
        let none = "none to \(name) lets anybody in any more."
        let said =
          switch count {
          case 0: "Nothing changed: \(name) has no one-time link that you could revoke."
          case 1: "Revoked 1 one-time link: \(none)"
          case let count?: "Revoked \(count) one-time links: \(none)"
          case nil: "Revoked the one-time links: \(none)"
          }
        return try StandardOutput.line(said)
      }
      let link = try await target.client.inviteOnce(target.address, permission: can?.permission)
      if output.json { return try JSON.write(link) }
      try StandardOutput.line(link.url.escapingControls)
      // The link alone is what scripts read.
      StandardError.write(
        "One person who has it can join until \(Format.time(link.expires)), and \(link.permission.word).\n")
    }
  }
}

struct Requests: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List and answer those who ask for access.",
    discussion: """
      Without PATH everyone who asks for access to something that you may share; you get a notice of each. They are told \
      how you answer.

      Examples:
        sheaf requests
        sheaf requests ~/Sheaf/Documents/plans
        sheaf requests approve ~/Sheaf/Documents/plans dan@example.com
        sheaf requests block ~/Sheaf/Documents/plans mallory@example.com
      """, subcommands: [List.self, Approve.self, Deny.self, Block.self], defaultSubcommand: List.self)

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List who asks.")

    @Argument(help: "A shared item.")
    var path: PathArgument?

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let requests = try await ItemTarget.with(optional: path, library) {
        try await $0.client.accessRequests($0.address)
      }
      if output.json { return try JSON.write(requests) }
      guard !requests.isEmpty else { return try StandardOutput.line("Nobody asks for access.") }
      var table = Table([("HANDLE", .left), ("NAME", .left), ("SINCE", .left), ("PATH", .left), ("", .left)])
      for request in requests {
        table.append([
          request.handle.description, request.name, Format.time(request.time), request.path,
          request.blocked ? "blocked" : "",
        ])
      }
      try StandardOutput.write(table.text)
    }
  }

  /// The person whom an answer is for.
  struct Person: ParsableArguments {
    @Argument(help: "The shared item.")
    var path: PathArgument

    @Argument(help: "Who asks.", completion: Completions.requesters)
    var handle: String

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    /// - Parameter said: The line to print, from handle and path.
    func answer(
      _ answer: RequestAnswer.Answer, permission: SharePermission? = nil,
      _ said: (AccountHandle, String) -> String
    ) async throws {
      let request = RequestAnswer(handle: try AccountHandle(handle), answer: answer, permission: permission)
      try await ItemTarget.with(path, library, changing: true) { target in
        let former = answer == .block ? try await target.client.accessRequests(target.address) : []
        let isSame = former.contains { $0.handle == request.handle && $0.blocked }
        try await target.client.answer(target.address, request)
        if answer == .approve, !output.json,
          let person = try await target.client.participants(target.address).first(where: { $0.handle == request.handle }
          )
        {
          return try StandardOutput.line(
            "\(person.handle) takes part in \(target.name) now, and can \(person.permission.word).".escapingControls)
        }
        guard !output.json else {
          return try JSON.write(AnswerOutput(path: target.given, handle: request.handle, answer: answer))
        }
        let line = (isSame ? "Nothing changed: " : "") + said(request.handle, target.name)
        try StandardOutput.line(line.escapingControls)
        if answer == .block,
          try await target.client.participants(target.address).contains(where: {
            $0.handle == request.handle && $0.acceptance == .accepted
          })
        {
          try StandardOutput.line(
            "They still take part. To end that: sheaf participant remove \(target.words) \(request.handle)"
              .escapingControls)
        }
      }
    }
  }

  struct Approve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Let someone in.",
      discussion: "Without --can they may do what the share gives people who are invited (`sheaf share --can`).")

    @OptionGroup var person: Person

    @Option(help: ArgumentHelp("What they may do.", valueName: "view|edit"))
    var can: Can?

    func run() async throws {
      try await person.answer(.approve, permission: can?.permission) { "\($0) takes part in \($1) now." }
    }
  }

  struct Deny: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Turn someone down, who may ask again.")

    @OptionGroup var person: Person

    func run() async throws { try await person.answer(.deny) { "Declined the request of \($0) for \($1)." } }
  }

  struct Block: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Have someone never ask again.")

    @OptionGroup var person: Person

    func run() async throws {
      try await person.answer(.block) { "\($0) joins \($1) by no link, and cannot ask again." }
    }
  }
}

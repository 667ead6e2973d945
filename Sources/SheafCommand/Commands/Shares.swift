import ArgumentParser
import SheafClient
import SheafModel

struct Shares: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List what you share, what others share with you, invitations, requests and offers.",
    discussion: """
      Examples:
        sheaf shares
        sheaf shares --as bob@example.com --json
      """)

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(optional: nil, library) { target in
      let shares = try await target.client.shares(of: target.address.account)
      try shares.show(output, orNothing: "Nothing is shared by you or with you.")
      if !output.json, !shares.byMe.isEmpty || !shares.withMe.isEmpty, let advice = await target.pathAdvice() {
        try StandardOutput.line(advice)
      }
    }
  }
}

extension AccountShares {
  /// Those alone that others share with the account, or offer to it; where `owner` is given, what this person alone
  /// shares.
  func fromOthers(owner: String?) -> AccountShares {
    AccountShares(
      byMe: [], withMe: withMe.filter { owner == nil || $0.owner.description == owner },
      invitations: invitations.filter { owner == nil || $0.owner.description == owner }, requests: [],
      transfers: TransferList(byMe: [], toMe: owner == nil ? transfers.toMe : []),
      missing: owner == nil ? missing?.only(.transfers) : nil)
  }

  /// Prints the lists, and what is missing.
  ///
  /// - Parameter nothing: What is said where all lists are empty.
  func show(_ output: OutputOptions, orNothing nothing: String) throws {
    guard output.json else { return try StandardOutput.write(text(orNothing: nothing)) }
    if let missing { StandardError.write("sheaf: \(missing.text)\n") }
    var lists = self
    lists.missing = nil
    try JSON.write(lists)
  }

  /// The lists for people, each under its heading; those that are empty are left out.
  ///
  /// - Parameter nothing: As of ``show(_:orNothing:)``.
  func text(orNothing nothing: String) -> String {
    var parts: [String] = []
    func add(_ heading: String, _ rows: [[String]]) {
      guard let first = rows.first else { return }
      var table = Table(first.map { _ in ("", .left) })
      for row in rows { table.append(["  " + row[0]] + row.dropFirst()) }
      parts.append(heading + "\n" + table.text)
    }
    add(
      "Shared by you",
      byMe.map { [$0.path, $0.kind, Self.people($0), $0.summaryWithEnd] })
    add(
      "Shared with you",
      withMe.map { [$0.path, $0.kind, "by \($0.owner)", "you can \($0.permission.word)"] })
    add(
      "Invitations",
      invitations.map {
        [
          $0.title, $0.kind, "by \($0.owner)", "you could \($0.permission.word)", Format.time($0.since),
          "sheaf accept \($0.url)",
        ]
      })
    for warning in invitations.flatMap(\.warnings) {
      parts[parts.count - 1] += "  Beware: \(warning.escapingControls)\n"
    }
    for (heading, isBlocked) in [("Requests for access", false), ("Blocked", true)] {
      add(
        heading,
        requests.filter { $0.blocked == isBlocked }.map { [$0.path, "\($0.handle)", $0.name, Format.time($0.time)] })
    }
    add(
      "You asked for access to",
      ownRequests.map { [$0.title, $0.kind, "of \($0.owner)", Format.time($0.time)] })
    if !ownRequests.isEmpty {
      parts[parts.count - 1] += "  Nobody answered yet. You take a request back with its link: sheaf leave URL\n"
    }
    add(
      "Offered by you",
      transfers.byMe.map { [$0.path ?? $0.name, $0.kind, "to \($0.recipient)", Format.time($0.time)] })
    add(
      "Offered to you",
      transfers.toMe.map { [$0.name, $0.kind, "by \($0.owner)", Format.time($0.time), "sheaf accept id:\($0.id)"] })
    if parts.isEmpty { parts.append(nothing + "\n") }
    if let missing { parts.append(missing.text + "\n") }
    return parts.joined(separator: "\n")
  }

  /// `2 people joined, 1 invited`.
  private static func people(_ share: AccountShare) -> String {
    guard let count = share.people else { return "" }
    let joined =
      switch count {
      case 0: "nobody joined"
      case 1: "1 person joined"
      default: "\(count) people joined"
      }
    guard let invited = share.invited, invited > 0 else { return joined }
    return joined + ", \(invited) invited"
  }
}

extension MissingLists {
  /// A sentence for people.
  fileprivate var text: String {
    let words = lists.map { $0 == .requests ? "requests for access" : "offers" }.joined(separator: " and ")
    return "Not known, since the hub cannot be asked: \(words) (\(reason.escapingControls))"
  }
}

extension AccountShare {
  /// The permissions in a phrase, and until when the link lets anybody in, if that is still to come.
  fileprivate var summaryWithEnd: String {
    guard `public` != .none, let expires, expires > .now else { return summary }
    return "\(summary); the link ends \(Format.time(expires))"
  }
}

import ArgumentParser
import SheafClient
import SheafModel

struct TransferCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "transfer", abstract: "Give a document or a folder to another account.",
    discussion: """
      They are told, and nothing changes before they accept. Then it moves to their Documents, with versions, labels and \
      what was deleted from it. If it is shared, the share goes along: they own it, and you go on taking part. At a hub, \
      what is shared is unshared before, and what is ignored does not go along: it stays yours, in its folder. Without \
      PATH it lists what is offered, by you and to you.

      Examples:
        sheaf transfer ~/Sheaf/Documents/plans bob@example.com
        sheaf transfer
        sheaf transfer --withdraw ~/Sheaf/Documents/plans
        sheaf accept id:0197c1f0-5d3e-7a51-9c3f-6a4a4e2f7c10 --as bob@example.com
        sheaf transfer --decline id:0197c1f0-5d3e-7a51-9c3f-6a4a4e2f7c10 --as bob@example.com
      """)

  @Argument(help: "An item of yours.")
  var path: PathArgument?

  @Argument(help: "To whom.", completion: Completions.people)
  var handle: String?

  @Flag(help: "Take the offer of PATH back.")
  var withdraw = false

  @Option(help: ArgumentHelp("Decline what is offered to you.", valueName: "id:UUID"))
  var decline: String?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if withdraw, decline != nil { throw ValidationError("Give one of --withdraw and --decline.") }
    if decline != nil, path != nil { throw ValidationError("Give no PATH with --decline.") }
    if withdraw, path == nil || handle != nil { throw ValidationError("Give a PATH alone with --withdraw.") }
    if !withdraw, path != nil, handle == nil {
      throw ValidationError("Give the HANDLE of the account to which it is to go.")
    }
  }

  /// The id in the name of an offered item; nil where the text is none.
  static func id(_ text: String) -> String? { text.hasPrefix("id:") ? String(text.dropFirst(3)) : nil }

  func run() async throws {
    if let decline { return try await answer(decline) }
    guard let path else { return try await list() }
    let handle = try handle.map { try AccountHandle($0) }
    try await ItemTarget.with(path, library, changing: true) { target in
      guard let handle else {
        try await target.client.withdrawTransfer(target.address)
        if output.json { return try JSON.write(TransferOutput(offers: .none)) }
        return try StandardOutput.line("\(target.name.escapingControls) is no longer offered to anybody.")
      }
      let former = try await target.client.transfers(of: target.address.account).byMe
      let offer = try await target.client.offerTransfer(target.address, to: handle)
      if output.json { return try JSON.write(TransferOutput(offers: .init(byMe: [offer], toMe: []))) }
      let isSame = former.contains { $0.id == offer.id && $0.recipient == handle }
      try StandardOutput.line(
        (isSame ? "Nothing changed: " : "")
          + "\(target.name) is offered to \(handle), who takes it with: sheaf accept id:\(offer.id)".escapingControls)
      for other in former where other.id == offer.id && other.recipient != handle {
        try StandardOutput.line("It is no longer offered to \(other.recipient).")
      }
      await Status.warn(ofIgnored: target)
    }
  }

  private func list() async throws {
    let offers = try await ItemTarget.with(optional: nil, library) {
      try await $0.client.transfers(of: $0.address.account)
    }
    if output.json { return try JSON.write(TransferOutput(offers: offers)) }
    guard !offers.isEmpty else { return try StandardOutput.line("Nothing is offered by you or to you.") }
    let shares = AccountShares(byMe: [], withMe: [], invitations: [], requests: [], transfers: offers)
    try StandardOutput.write(shares.text(orNothing: ""))
  }

  private func answer(_ text: String) async throws {
    guard let id = Self.id(text) else {
      throw SheafError(
        .invalid, subject: text.printable, reason: "names no offer", advice: "give the id that `sheaf transfer` shows")
    }
    let offer = try await ItemTarget.with(optional: nil, library, changing: true) { target in
      let account = target.address.account
      // For its name alone.
      let offer = try? await target.client.transfers(of: account).toMe.first { $0.id == id }
      try await target.client.declineTransfer(id, as: account)
      return offer
    }
    if output.json { return try JSON.write(TransferOutput(offers: .none)) }
    try StandardOutput.line("Declined \((offer?.name ?? text).escapingControls).")
  }
}

/// The JSON output of `transfer`: what is offered, or of an offer that was made, that one.
struct TransferOutput: Encodable {
  let byMe: [TransferOffer]
  let toMe: [TransferOffer]

  init(offers: TransferList) { (byMe, toMe) = (offers.byMe, offers.toMe) }
}

import SheafModel

@testable import SheafLibrary

/// Who may have seen what, by the order of actions and not by clocks.
///
/// Contents that were current while their document was in a share, and versions that came while it was, are its
/// participants' to see for as long as the sharing goes on, whenever they joined. What was current only before is
/// nobody's but the owner's and the writer's. An item is known to them once it was there, deleted or not. Who gave
/// something away may know what it held while it was theirs.
struct ProgramSights {
  private var contents: [ProgramSnapshot.Sharing: Set<String>] = [:]
  private var items: [ProgramSnapshot.Sharing: Set<String>] = [:]
  /// The sharings of which an account was ever a member.
  private var joined: [Int64: Set<ProgramSnapshot.Sharing>] = [:]
  private var authors: [Int64: Set<String>] = [:]
  /// What was an account's own: items, and the texts that they held then.
  private var owned: [Int64: (items: Set<String>, texts: Set<String>)] = [:]
  /// The sharings in which documents were that are among the deleted.
  private var lost: [String: ProgramSnapshot.Sharing] = [:]

  mutating func note(_ before: ProgramSnapshot, _ after: ProgramSnapshot, _ step: ProgramStep) {
    for (sharing, accounts) in after.members {
      for account in accounts { joined[account, default: []].insert(sharing) }
    }
    for (id, document) in after.items {
      owned[document.row.owner, default: ([], [])].items.insert(document.row.uuid.text)
      owned[document.row.owner, default: ([], [])].texts.formUnion(document.texts.values)
      for version in document.versions {
        authors[version.author, default: []].insert(document.texts[version.number] ?? "")
      }
      let former = before.items[id].flatMap { $0.row.uuid == document.row.uuid ? $0 : nil }
      let uuid = document.row.uuid.text
      var formerSharing = former?.sharing
      if document.isLive {
        // A program that makes a document again undoes its deletion: it was in its share all the time.
        if let sharing = lost.removeValue(forKey: uuid), ![.recover, .takeOut, .goBack].contains(step.verb) {
          formerSharing = sharing
        }
      } else {
        if let sharing = former?.sharing { lost[uuid] = sharing }
        formerSharing = formerSharing ?? lost[uuid]
      }
      // What was deleted takes along what was written there until then, and goes on to be part of the trash of its
      // folder, also while that is deleted, too.
      guard let sharing = document.sharing ?? (document.isLive ? nil : lost[uuid]) else { continue }
      if document.isLive {
        items[sharing, default: []].insert(uuid)
        contents[sharing, default: []].insert(document.text)
      }
      // Deleted there, it may still be written by who has it open.
      guard items[sharing]?.contains(uuid) ?? false, let former, formerSharing == sharing else {
        continue
      }
      for version in document.versions where version.number >= former.row.version {
        contents[sharing, default: []].insert(document.texts[version.number] ?? "")
      }
    }
  }

  private func mayRead(_ account: Int64, _ text: String) -> Bool {
    text.isEmpty || authors[account]?.contains(text) ?? false || owned[account]?.texts.contains(text) ?? false
      || (joined[account] ?? []).contains { contents[$0]?.contains(text) ?? false }
  }

  func check(_ account: Int64, reads text: String, in place: String) throws {
    guard mayRead(account, text) else {
      throw Violation(rule: "nobody reads what was before", what: "account \(account) reads \(text) in \(place)")
    }
  }

  func check(_ account: Int64, sees item: String, as what: String, _ snapshot: ProgramSnapshot) throws {
    let isKnown = owned[account]?.items.contains(item) ?? false
    guard isKnown || (joined[account] ?? []).contains(where: { items[$0]?.contains(item) ?? false }) else {
      let path = snapshot.items.values.first { $0.row.uuid.text == item }?.path ?? item
      throw Violation(rule: "nobody learns of what was before", what: "account \(account) sees \(path) as \(what)")
    }
  }
}

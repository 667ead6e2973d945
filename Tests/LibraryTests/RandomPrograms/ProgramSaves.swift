import Foundation
import SheafModel

@testable import SheafLibrary

/// No save passes over another account's in silence: where one is made from what its program had read before the other
/// one came, and the other one's text is not in it, a conflict marks it.
///
/// Not meant are saves of programs that read nothing, and those that took the contents away themselves: they replace
/// what is there, whatever it is. Nor are saves in place that another program of the account wrote than the one that
/// read: the library cannot know that (docs/LIMITS.md).
struct ProgramSaves {
  private struct Reader: Hashable {
    let account: Int64
    let ino: Int64
    /// The version that was current when it read last.
    let version: Int64
    let process: Int32
  }

  /// A file as an account has it.
  private struct Draft: Hashable {
    let account: Int64
    let ino: Int64
  }

  /// Texts that an account has read or written anywhere.
  private var known: [Int64: Set<String>] = [:]
  /// Texts that a program has written, for whatever account: it did that itself (rule 6 of ``Readings``).
  private var written: [Int32: Set<String>] = [:]
  /// Handles that read something, and took nothing away since.
  private var readers: [UInt64: Reader] = [:]
  /// Programs that wrote to a draft, elsewhere than at the end, what no version has yet.
  private var writers: [Draft: Set<Int32>] = [:]
  private var closing: [UInt64] = []

  private static func tokens(_ text: String) -> Set<String> {
    Set(text.split(separator: "<").filter { $0.hasSuffix(">") }.map(String.init))
  }

  mutating func read(
    _ text: String, _ slot: ProgramWorld.OpenSlot, _ world: ProgramWorld, _ snapshot: ProgramSnapshot
  ) {
    let account = world.account(slot.actor)
    known[account, default: []].formUnion(Self.tokens(text))
    guard !text.isEmpty, let version = snapshot.item(of: slot.ino)?.row.version else { return }
    readers[slot.handle] = Reader(
      account: account, ino: slot.ino, version: version, process: world.process(slot.actor))
  }

  /// Notes that a write made `text` of `former`: what it made of parts of other texts is its own, too.
  mutating func wrote(
    _ text: String, over former: String, appends: Bool, _ slot: ProgramWorld.OpenSlot, _ world: ProgramWorld
  ) {
    let own = Self.tokens(text).subtracting(Self.tokens(former))
    known[world.account(slot.actor), default: []].formUnion(own)
    written[world.process(slot.actor), default: []].formUnion(own)
    if appends { return }
    writers[Draft(account: world.account(slot.actor), ino: slot.ino), default: []].insert(world.process(slot.actor))
  }

  mutating func truncated(_ slot: ProgramWorld.OpenSlot) {
    for (handle, reader) in readers where reader.ino == slot.ino { readers[handle] = nil }
  }

  /// Notes that the handle is gone once the step is looked at that closes it.
  mutating func closed(_ slot: ProgramWorld.OpenSlot) { closing.append(slot.handle) }

  mutating func forgetHandles() { readers = [:] }

  mutating func check(_ before: ProgramSnapshot, _ after: ProgramSnapshot, _ step: ProgramStep) throws {
    defer {
      for handle in closing { readers[handle] = nil }
      closing = []
      forgetStored(before, after)
    }
    guard [.close, .flush, .fsync, .upkeep, .wait].contains(step.verb) else { return }
    for (id, document) in after.items {
      guard let former = before.items[id], document.row.version > former.row.version, document.row.conflict == nil,
        let version = document.versions.last, let passed = former.versions.last, version.author != passed.author,
        document.isLive, document.sharing != nil
      else { continue }
      let isInformed = known[version.author] ?? []
      let lost = Self.tokens(former.text).subtracting(Self.tokens(document.text)).subtracting(isInformed)
      let wrote = writers[Draft(account: version.author, ino: document.inode.ino)] ?? []
      let isStale = readers.values.contains {
        $0.account == version.author && $0.ino == document.inode.ino && $0.version < passed.number
          && wrote.contains($0.process) && !lost.isSubset(of: written[$0.process] ?? [])
      }
      guard isStale else { continue }
      throw Violation(
        rule: "no save passes over another's in silence",
        what: "'\(step)' lost \(lost.sorted()) of version \(passed.number) of \(document.path), and has no conflict")
    }
  }

  /// Forgets who wrote what a version has by now.
  private mutating func forgetStored(_ before: ProgramSnapshot, _ after: ProgramSnapshot) {
    for (id, document) in after.items {
      for version in document.versions where before.items[id]?.texts[version.number] != document.texts[version.number] {
        writers[Draft(account: version.author, ino: document.inode.ino)] = nil
      }
    }
  }
}

import Foundation
import SheafModel

@testable import SheafLibrary

/// No save passes over another account's in silence: where one is made from what its program had read before the other
/// one came, and the other one's text is not in it, a conflict marks it.
///
/// Not meant are saves of programs that read nothing, and those that took the contents away themselves: they replace
/// what is there, whatever it is.
struct ProgramSaves {
  private struct Reader: Hashable {
    let account: Int64
    let ino: Int64
    /// The version that was current when it read last.
    let version: Int64
    let process: Int32
  }

  /// Texts that an account has read or written anywhere.
  private var known: [Int64: Set<String>] = [:]
  /// Texts that a program has written, for whatever account: it did that itself (rule 6 of ``Readings``).
  private var written: [Int32: Set<String>] = [:]
  /// Handles that read something, and took nothing away since.
  private var readers: [UInt64: Reader] = [:]
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
    _ text: String, over former: String, _ slot: ProgramWorld.OpenSlot, _ world: ProgramWorld
  ) {
    let own = Self.tokens(text).subtracting(Self.tokens(former))
    known[world.account(slot.actor), default: []].formUnion(own)
    written[world.process(slot.actor), default: []].formUnion(own)
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
    }
    guard [.close, .flush, .fsync, .upkeep, .wait].contains(step.verb) else { return }
    for (id, document) in after.items {
      guard let former = before.items[id], document.row.version > former.row.version, document.row.conflict == nil,
        let version = document.versions.last, let passed = former.versions.last, version.author != passed.author,
        document.isLive, document.sharing != nil
      else { continue }
      let isInformed = known[version.author] ?? []
      let lost = Self.tokens(former.text).subtracting(Self.tokens(document.text)).subtracting(isInformed)
      let isStale = readers.values.contains {
        $0.account == version.author && $0.ino == document.inode.ino && $0.version < passed.number
          && !lost.isSubset(of: written[$0.process] ?? [])
      }
      guard isStale else { continue }
      throw Violation(
        rule: "no save passes over another's in silence",
        what: "'\(step)' lost \(lost.sorted()) of version \(passed.number) of \(document.path), and has no conflict")
    }
  }
}

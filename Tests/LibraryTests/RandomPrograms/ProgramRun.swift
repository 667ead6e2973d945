import Foundation
import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

/// Does a program's steps, and checks after each that no rule is broken.
final class ProgramRun {
  let world: ProgramWorld
  var promises = PromisedContents()
  var sights = ProgramSights()
  var saves = ProgramSaves()
  private var texts = ProgramSnapshot.Texts()
  private(set) var before: ProgramSnapshot
  /// Items that had several names at a time.
  private(set) var linked: Set<String> = []
  /// Items that left no trace when their own program took them away (rule 6 of ``Identity``), told of or not.
  var vanished: Set<String> = []
  /// Steps that did something, and those that the library refused, by verb.
  private(set) var done: [ProgramStep.Verb: Int] = [:]
  private(set) var refused: [ProgramStep.Verb: Int] = [:]
  /// Versions that somebody has open.
  var peeks: [Peek] = []

  /// A version that somebody has open.
  struct Peek {
    let reader: VersionReader
    let text: String
    let account: Int64
    let item: Int64
  }

  init() throws {
    world = try ProgramWorld()
    before = try ProgramSnapshot(world.library, &texts)
  }

  /// What came of a program.
  struct Outcome {
    var steps: [ProgramStep] = []
    /// The rule that its last step broke, if one did.
    var violation: Violation?
    /// Steps that were not refused, by verb.
    var done: [ProgramStep.Verb: Int] = [:]
    /// Steps that were.
    var refused: [ProgramStep.Verb: Int] = [:]
  }

  /// Runs a program in a library of its own.
  ///
  /// - Parameter followsLog: whether the events are followed at the end, too.
  static func run(_ steps: [ProgramStep], followsLog: Bool = true) throws -> Outcome {
    var rest = steps[...]
    return try ProgramRun().run(followsLog) { _ in rest.popFirst() }
  }

  /// Makes a program of `count` steps by the random numbers of a seed, each for what is there then, and runs it.
  static func random(_ seed: UInt64, count: Int, followsLog: Bool) throws -> Outcome {
    var generator = ProgramGenerator(seed: seed)
    var left = count
    return try ProgramRun().run(followsLog) { run in
      left -= 1
      return left < 0 ? nil : generator.step(run.scene)
    }
  }

  private func run(_ followsLog: Bool, _ next: (ProgramRun) -> ProgramStep?) throws -> Outcome {
    defer { world.remove() }
    var outcome = Outcome()
    do {
      while let step = next(self) {
        outcome.steps.append(step)
        try perform(step)
      }
      try finish(followsLog)
    } catch let violation as Violation {
      outcome.violation = violation
    }
    (outcome.done, outcome.refused) = (done, refused)
    return outcome
  }

  private var scene: ProgramGenerator.Scene {
    var scene = ProgramGenerator.Scene()
    for document in before.items.values where document.inode.parent != 0 {
      let path = world.path(document.path, of: document.row.owner)
      guard document.isLive else {
        scene.deleted.append(path)
        continue
      }
      scene.versions[path] = document.row.lastVersion
      let isFolder = document.row.kind == .folder
      if isFolder { scene.folders.append(path) } else { scene.documents.append(path) }
      if document.sharing != nil { scene.shared.insert(path) }
      if document.sharing?.item == document.row.id { scene.shares.append(path) }
    }
    scene.folders.sort()
    scene.documents.sort()
    scene.deleted.sort()
    scene.shares.sort()
    scene.slots = world.slots.keys.sorted()
    return scene
  }

  private func finish(_ followsLog: Bool) throws {
    let alice = ProgramStep.Actor(person: .alice, program: 0)
    for slot in world.slots.keys.sorted() { try perform(ProgramStep(alice, .close, ["\(slot)"])) }
    for name in ProgramWorld.people {
      try perform(ProgramStep(.init(person: name, program: 2), .look))
    }
    try checkSound()
    if followsLog { try checkEvents() }
    try perform(ProgramStep(alice, .restart))
  }

  /// Does a step; one that the library refuses does nothing.
  func perform(_ step: ProgramStep) throws {
    world.clock.advance(milliseconds: 3)
    do {
      try act(step)
      done[step.verb, default: 0] += 1
    } catch let error as SheafError {
      guard error.kind != .corrupt, error.kind != .inputOutput else {
        throw Violation(rule: "no action finds damage", what: "\(step): \(error)")
      }
      refused[step.verb, default: 0] += 1
    }
    let after = try ProgramSnapshot(world.library, &texts)
    try compare(before, after, step)
    before = after
  }

  private func compare(_ before: ProgramSnapshot, _ after: ProgramSnapshot, _ step: ProgramStep) throws {
    for document in after.items.values where document.row.kind == .document && document.inode.nlink > 1 {
      linked.insert(document.row.uuid.text)
    }
    for (id, document) in after.items where document.row.version > before.items[id]?.row.version ?? 0 {
      // What was written before is a version of its own, and nothing of it is there to be closed.
      if document.versions.last?.cause == .restore { promises.restored(document.inode.ino) }
    }
    // Any step may have saved what one account had, and appended again to that what others only appended.
    for slot in world.slots.values { noteContents(of: slot) }
    try promises.check(after.contents)
    try checkPeeks(step)
    try checkReaders(after, step)
    try checkVersions(before, after, step)
    sights.note(before, after, step)
    try saves.check(before, after, step)
  }

  /// A closed version stays as it is for as long as its document does.
  private func checkVersions(_ before: ProgramSnapshot, _ after: ProgramSnapshot, _ step: ProgramStep) throws {
    for (id, old) in before.items {
      guard let new = after.items[id], new.row.uuid == old.row.uuid else { continue }
      for version in old.versions where !version.isOpen {
        guard let now = new.texts[version.number] else {
          if step.verb == .purgeVersion { continue }
          throw Violation(
            rule: "closed versions stay", what: "'\(step)' took version \(version.number) of \(old.path) away")
        }
        guard now == old.texts[version.number] else {
          throw Violation(
            rule: "closed versions never change",
            what: "'\(step)' made version \(version.number) of \(old.path) \(now)")
        }
      }
    }
  }

  /// Who has closed all that they wrote reads what is current.
  private func checkReaders(_ after: ProgramSnapshot, _ step: ProgramStep) throws {
    try world.library.locked {
      for document in after.items.values where document.isLive && document.row.kind == .document {
        for draft in world.library.inodes[document.inode.ino]?.drafts ?? []
        where !draft.isChanged
          && draft.session.map({ session in
            session.dirtySince == nil && !session.isKept && session.isClosed
          }) ?? true
        {
          guard var working = draft.working else { continue }
          var bytes = [UInt8](repeating: 0, count: Int(working.size))
          _ = try bytes.withUnsafeMutableBytes { try working.read(at: 0, into: $0, from: world.library) }
          let text = String(decoding: bytes, as: UTF8.self)
          guard text == document.text else {
            throw Violation(
              rule: "a reader reads what is current",
              what: "'\(step)' has account \(draft.account) read \(text) in \(document.path), not \(document.text)")
          }
        }
      }
    }
  }

  /// Who has a version open reads what it held, whatever became of it, for as long as they may.
  private func checkPeeks(_ step: ProgramStep) throws {
    for peek in peeks {
      let found: String
      do {
        found = try world.read(peek.reader)
      } catch let error as SheafError {
        let mayLose = try world.library.store.read { try $0.item(peek.item) }?.owner != peek.account
        if mayLose, [.accessDenied, .notFound].contains(error.kind) { continue }
        found = "\(error)"
      }
      guard found == peek.text else {
        throw Violation(rule: "an open version stays", what: "'\(step)' made \(peek.text) \(found)")
      }
    }
  }

  func checkSound() throws {
    let problems = try world.library.check { _ in }.problems
    guard problems.isEmpty else { throw Violation(rule: "check is sound", what: problems.joined(separator: "; ")) }
  }

  // MARK: - Steps

  private func act(_ step: ProgramStep) throws {
    let (actor, path) = (step.actor, step.first)
    switch step.verb {
    case .open, .write, .append, .writeKnown, .rewrite, .mapped, .read, .truncate, .fsync, .flush, .close:
      try actOnSlot(step)
    case .save:
      let slot = try open(path, O_WRONLY | O_CREAT | O_TRUNC, actor)
      defer { close(slot) }
      try write(slot, at: 0)
      try flush(slot, step)
    case .rename: try rename(step, .replace)
    case .exchange: try rename(step, .exchange)
    case .link:
      let (parent, name) = try world.place(step.second)
      let ino = try world.ino(path)
      _ = try world.library.link(ino, parent, name, world.caller(actor))
      promises.named(ino, by: world.process(actor), name)
    case .unlink: try unlink(step)
    case .mkdir:
      let (parent, name) = try world.place(path)
      _ = try world.library.make(.folder, parent, name, mode: 0o755, world.caller(actor))
    case .rmdir:
      let (parent, name) = try world.place(path)
      try world.library.rmdir(parent, name, world.caller(actor))
    case .takeOut: try takeOut(step)
    case .look: try look(step)
    case .peek: try peek(step)
    case .compact: _ = try world.library.compact { _ in }
    case .upkeep: keepUp()
    case .wait:
      // As long as somebody writes, its upkeep goes on all the time.
      for _ in 0..<(Int64(path) ?? 1) / 2 {
        world.clock.advance(2)
        keepUp()
      }
    case .restart, .crash:
      try step.verb == .restart ? world.restart() : world.crash()
      promises.endAllSessions()
      saves.forgetHandles()
      peeks = []
      // Numbers of what is gone are given again.
      texts = ProgramSnapshot.Texts()
      try checkSound()
    default: try command(step)
    }
  }

  private func keepUp() {
    world.library.keepUp()
    // What an account only appended may have been appended again to what another one saved.
    for slot in world.slots.values { noteContents(of: slot) }
    promises.staysYoung(Set(world.slots.values.filter(\.mayWrite).map(\.ino)), at: world.clock.now)
  }

  private func actOnSlot(_ step: ProgramStep) throws {
    let number = Int(step.first) ?? 0
    if step.verb == .open {
      guard world.slots[number] == nil else { return }
      let flags: [String: Int32] = [
        "r": O_RDONLY, "rw": O_RDWR, "creat": O_RDWR | O_CREAT, "trunc": O_RDWR | O_CREAT | O_TRUNC,
      ]
      world.slots[number] = try open(step.second, flags[step.arguments.last ?? ""] ?? O_RDONLY, step.actor)
      return
    }
    guard let slot = world.slots[number] else { return }
    switch step.verb {
    case .write: try write(slot, at: 0)
    case .append: try write(slot, at: 0, appends: true)
    case .writeKnown: try write(slot, at: slot.known)
    case .rewrite:
      guard let contents = world.contents(slot.handle), !contents.isEmpty else { return }
      try write(contents, slot, at: 0)
    case .mapped:
      // The kernel reads a page before a program changes it.
      saves.read(try world.read(slot), slot, world, before)
      try write(slot, at: 0, isWriteBack: true)
    case .read:
      let text = try world.read(slot)
      world.slots[number]?.known = Int64(text.utf8.count)
      saves.read(text, slot, world, before)
    case .truncate:
      guard slot.mayWrite else { return }
      _ = try world.library.setAttributes(slot.ino, .init(size: 0), handle: slot.handle, world.caller(slot.actor))
      saves.truncated(slot)
      noteWrite(slot)
    case .fsync: try fsync(slot, step)
    case .flush: try flush(slot, step)
    default:
      world.slots[number] = nil
      defer { close(slot) }
      try flush(slot, step)
    }
  }

  private func open(_ path: String, _ flags: Int32, _ actor: ProgramStep.Actor) throws -> ProgramWorld.OpenSlot {
    let existed = world.find(path)
    let (process, time) = (world.process(actor), world.clock.now)
    let slot = try world.open(path, flags, actor)
    if existed == nil {
      // A document that is made again stays what it was (rule 5 of ``Identity``).
      if let id = try item(of: slot.ino), before.items[id] == nil {
        promises.made(slot.ino, by: process, at: time)
      }
      let (parent, name) = try world.place(path)
      try noteParted(promises.remembered(parent, name, process, at: time), process, at: time)
    }
    if flags & O_TRUNC != 0 {
      saves.truncated(slot)
      noteWrite(slot)
    }
    return slot
  }

  private func noteWrite(_ slot: ProgramWorld.OpenSlot, written: String = "", appends: Bool = false) {
    promises.wrote(
      slot, world.account(slot.actor), world.contents(slot.handle) ?? "", written: written, appends: appends,
      by: world.process(slot.actor))
  }

  private func write(
    _ slot: ProgramWorld.OpenSlot, at offset: Int64, appends: Bool = false, isWriteBack: Bool = false
  ) throws {
    try write(world.freshText(), slot, at: offset, appends: appends, isWriteBack: isWriteBack)
  }

  private func write(
    _ text: String, _ slot: ProgramWorld.OpenSlot, at offset: Int64, appends: Bool = false, isWriteBack: Bool = false
  ) throws {
    guard slot.mayWrite else { return }
    let former = world.contents(slot.handle) ?? ""
    try world.write(text, slot, at: offset, appends: appends, isWriteBack: isWriteBack)
    guard let contents = world.contents(slot.handle), contents.contains(text) else {
      throw Violation(rule: "what is written is there", what: "\(text) is not in \(world.contents(slot.handle) ?? "")")
    }
    if let number = world.slots.first(where: { $0.value.handle == slot.handle })?.key {
      world.slots[number]?.known = Int64(contents.utf8.count)
    }
    noteWrite(slot, written: text, appends: appends)
    saves.wrote(contents, over: former, appends: appends, slot, world)
  }

  /// Notes what accounts that have a file open have in it.
  private func noteContents(of slot: ProgramWorld.OpenSlot) {
    for other in [slot] + world.slots.values where other.ino == slot.ino {
      if let contents = world.contents(other.handle) { promises.holds(slot.ino, world.account(other.actor), contents) }
    }
  }

  private func name(of ino: Int64) -> [UInt8]? {
    world.library.locked { world.library.inodes[ino].flatMap { $0.isOrphan ? nil : $0.row.name } }
  }

  private func flush(_ slot: ProgramWorld.OpenSlot, _ step: ProgramStep) throws {
    noteContents(of: slot)
    try world.library.flush(slot.handle)
    // What another account only appended may have been appended again to this.
    noteContents(of: slot)
    guard slot.mayWrite else { return }
    promises.closed(slot.ino, at: world.clock.now)
    // What has no name any more is nobody's to find.
    guard let name = name(of: slot.ino) else { return }
    promises.saved(slot.ino, world.account(slot.actor), slot.handle, name, "\(step)", at: world.clock.now)
  }

  private func fsync(_ slot: ProgramWorld.OpenSlot, _ step: ProgramStep) throws {
    noteContents(of: slot)
    try world.library.fsync(slot.ino)
    guard let name = name(of: slot.ino) else { return }
    // What one account only appended may have been appended again when the one before it was saved.
    noteContents(of: slot)
    for account in world.accounts.values.sorted() {
      promises.saved(slot.ino, account, nil, name, "\(step)", at: world.clock.now)
    }
  }

  private func close(_ slot: ProgramWorld.OpenSlot) {
    world.release(slot)
    let account = world.account(slot.actor)
    if slot.mayWrite, world.writerCount(of: slot.ino, for: account) == 0 {
      promises.lastWriterClosed(slot.ino, account, "the last close of slot \(slot.handle)")
    }
    saves.closed(slot)
  }
}

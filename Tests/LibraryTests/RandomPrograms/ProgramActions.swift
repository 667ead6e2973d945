import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

/// Names and commands of random programs.
extension ProgramRun {
  // MARK: - Names

  func unlink(_ step: ProgramStep) throws {
    let (parent, name) = try world.place(step.first)
    let ino = try world.ino(step.first)
    let (process, time) = (world.process(step.actor), world.clock.now)
    let count = world.names(of: ino)?.count ?? 0
    let document = before.item(of: ino)
    try world.library.unlink(parent, name, world.caller(step.actor))
    let leavesNoTrace = promises.leavesNoTrace(ino, name, process, at: time)
    if let document, let (_, place) = world.names(of: ino), let id = try item(of: ino), id != document.row.id {
      // Rule 5 of ``Identity``: it was linked to the name of a document, and is that one now.
      let former = promises.remembered(place.parent, place.name, process, at: time)
      promises.dissolved(ino, name, process, holding: currentText(of: ino), at: time)
      try noteParted(former, process, at: time)
      guard former != nil else {
        throw Violation(rule: "an unlink keeps the document", what: "'\(step)' made it another item")
      }
    }
    promises.tookName(parent, name, of: ino, isLast: count == 1, process, at: time)
    if leavesNoTrace, let document { vanished.insert(document.row.uuid.text) }
    guard count == 1, let document, !leavesNoTrace, !document.row.isQuiet, document.row.version > 0 else { return }
    guard try world.library.store.read({ try $0.item(document.row.id) }) != nil else {
      throw Violation(rule: "what is deleted can come back", what: "'\(step)' destroyed \(document.path)")
    }
  }

  func rename(_ step: ProgramStep, _ mode: Library.RenameMode) throws {
    let (source, target) = (try world.place(step.first), try world.place(step.second))
    let ino = try world.ino(step.first)
    let other = world.find(step.second)
    let (process, time) = (world.process(step.actor), world.clock.now)
    let (names, otherNames) = (world.names(of: ino), other.flatMap(world.names(of:)))
    let (file, document) = (before.item(of: ino), other.flatMap(before.item(of:)))
    let isOwn = other.map { promises.isOwn($0, of: process, at: time) } ?? false
    let isProved = other.map(promises.isProved) ?? false
    try world.library.rename(
      source.parent, source.name, to: target.parent, target.name, mode, world.caller(step.actor))
    guard ino != other else { return }
    promises.leaves(ino, source.name, at: time)
    if let other { promises.leaves(other, target.name, at: time) }
    if mode == .exchange {
      if let other {
        if try item(of: ino) != file?.row.id { promises.leftItems(ino, other) }
        promises.named(other, by: process)
      }
      promises.named(ino, by: process)
      return
    }
    let former = other ?? promises.remembered(target.parent, target.name, process, at: time)
    if let file, file.row.kind == .document, try item(of: ino) != file.row.id {
      promises.dissolved(ino, source.name, process, holding: currentText(of: ino), at: time)
    }
    // Of what gives its contents to a file that is quiet once it is told of, no event tells.
    if let file, other != nil, FileRole.looksPassing(target.name) { vanished.insert(file.row.uuid.text) }
    if let other {
      promises.tookName(
        target.parent, target.name, of: other, isLast: otherNames?.count == 1, process, at: time)
    }
    // Rule 5 of ``Identity``: a temporary file's name is made again for another save.
    if ![.scratch, .temporary].contains(FileRole(source.name)) || FileRole.isNamedAfter(target.name, source.name) {
      promises.tookName(source.parent, source.name, of: ino, isLast: false, process, at: time)
    }
    promises.named(ino, by: process, target.name)
    try noteParted(former, process, at: time)
    if former == nil, let file, try item(of: ino) != file.row.id {
      throw Violation(rule: "a rename to a free name keeps the document", what: "'\(step)' made it another item")
    }
    // Rule 3 of ``Identity``. What its own program had set aside under a passing name may be another document.
    guard let file, file.row.kind == .document, let document, document.row.kind == .document, !document.row.isQuiet,
      names?.count == 1, otherNames.map({ $0.oldest == target }) ?? false,
      !FileRole.isBackup(target.name, of: source.name), FileRole(target.name) != .scratch,
      !isOwn || isProved && !FileRole.looksPassing(target.name)
    else { return }
    guard try item(of: world.ino(step.second)) == document.row.id else {
      throw Violation(rule: "a save by rename keeps the document", what: "'\(step)' put another item there")
    }
  }

  /// Notes what is left of a document that another file became: it is a document of its own from now on, which that
  /// file's program made (rules 5 and 9 of ``Identity``).
  func noteParted(_ former: Int64?, _ process: Int32, at time: Timestamp) throws {
    guard let former, let document = before.item(of: former) else { return }
    guard let left = try item(of: former) else {
      let livesOn = try world.library.store.read { try $0.inode(item: document.row.id) } != nil
      if livesOn { promises.replaced(former, by: process) }
      return
    }
    guard left != document.row.id else { return }
    promises.parted(
      former, world.names(of: former)?.oldest.name, by: process, holding: currentText(of: former), at: time)
  }

  /// The item that a file is by now.
  func item(of ino: Int64) throws -> Int64? {
    try world.library.store.read { try $0.inode(ino)?.item }
  }

  /// What a file's current version holds.
  func currentText(of ino: Int64) -> String? {
    var texts = ProgramSnapshot.Texts()
    return (try? ProgramSnapshot(world.library, &texts))?.item(of: ino)?.text
  }

  // MARK: - Commands

  func command(_ step: ProgramStep) throws {
    let library = world.library
    let path = try world.commandPath(step.first, step.actor)
    switch step.verb {
    case .recover: _ = try library.recover(path, id: nil) { _ in }
    case .share: _ = try library.share(path, ShareChange())
    case .unshare: try library.unshare(path)
    case .invite:
      guard let name = People.Name(rawValue: step.second) else { return }
      var change = ShareChange()
      change.with = [name.handle]
      change.permission = step.arguments.last == "edit" ? .readWrite : .readOnly
      let share = try library.share(path, change)
      _ = try library.accept(share.url, as: name.handle)
    case .remove:
      guard let name = People.Name(rawValue: step.second) else { return }
      try library.removeParticipant(path, name.handle)
    case .leave: try library.leave(path)
    case .give:
      guard let name = People.Name(rawValue: step.second) else { return }
      let offer = try library.offerTransfer(path, to: name.handle)
      _ = try library.acceptTransfer(offer.id, as: name.handle)
    case .label: _ = try library.label(path, name: "label \(world.written)", version: nil)
    case .restore: _ = try library.restore(path, version: Int64(step.second) ?? 1)
    case .resolve: try library.resolveConflict(path)
    case .purge: try purge(path) { try library.purge(path, version: nil) }
    case .empty:
      try purge(path, onlyDeleted: true) {
        _ = try library.emptyTrash(step.actor.person.handle, below: path, .init()) { _ in }
      }
    case .goBack: try goBack(path, step)
    case .purgeVersion:
      let number = Int64(step.second) ?? 1
      let document = world.find(step.first).flatMap { before.item(of: $0) }
      let result = Result { try library.purge(path, version: number) }
      let isGone = try document.map { try library.store.read { [id = $0.row.id] in try $0.version(id, number) } == nil }
      if isGone ?? false, let text = document?.texts[number] { promises.purged([text]) }
      try result.get()
    default: break
    }
  }

  /// Takes what was deleted from a folder out of its trash.
  func takeOut(_ step: ProgramStep) throws {
    guard step.arguments.count == 3 else { return }
    let target = try world.place(step.arguments[2])
    try world.library.recover(
      Array(step.second.utf8), deletedFrom: world.ino(step.first), to: target.parent, target.name,
      world.caller(step.actor))
  }

  /// Makes a folder what it was: nothing of what is there now is lost by that.
  private func goBack(_ path: ItemPath, _ step: ProgramStep) throws {
    let time = Self.earlier(world.clock.now, milliseconds: Int64(step.second) ?? 0)
    _ = try world.library.restoreFolder(path, FolderRestoreRequest(time: time, by: nil, dryRun: nil)) { _ in }
  }

  static func earlier(_ time: Timestamp, milliseconds: Int64) -> Timestamp {
    Timestamp(nanoseconds: time.nanoseconds - milliseconds * 1_000_000)
  }

  /// What goes by a purge is all that was in the item, or below it, and nothing else.
  private func purge(_ path: ItemPath, onlyDeleted: Bool = false, _ action: () throws -> Void) throws {
    var texts = ProgramSnapshot.Texts()
    // What waits to be stored is part of what goes.
    world.library.completeSaves()
    let former = try ProgramSnapshot(world.library, &texts)
    let result = Result { try action() }
    let left = try ProgramSnapshot(world.library, &texts)
    let prefix = path.components.dropFirst().map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    for (id, document) in former.items where left.items[id] == nil {
      guard prefix.isEmpty || document.path == prefix || document.path.hasPrefix(prefix + "/") else {
        throw Violation(rule: "a purge destroys what it names", what: "\(document.path) went with \(prefix)")
      }
      guard !onlyDeleted || !document.isLive else {
        throw Violation(rule: "emptying the trash destroys what is in it", what: "\(document.path) went")
      }
      promises.purged(Set(document.texts.values))
    }
    try result.get()
  }
}

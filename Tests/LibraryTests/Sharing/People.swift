import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// A library with several people, each at a mount of their own: `try people.as(.bob) { try $0.read("Shared/…") }`.
final class People: Sendable {
  enum Name: String, CaseIterable {
    case alice, bob, carol, dan

    var handle: AccountHandle { try! AccountHandle("\(rawValue)@example.com") }

    /// Their Linux user, and group.
    var uid: UInt32 {
      switch self {
      case .alice: 1000
      case .bob: 1001
      case .carol: 1002
      case .dan: 1003
      }
    }
  }

  let fixture: LibraryFixture

  init() throws {
    fixture = try LibraryFixture()
    for name in Name.allCases where name != .alice {
      _ = try library.addAccount(name.handle, name: nil, uid: name.uid, gid: name.uid)
    }
    let alice = Name.alice.uid
    _ = try library.setAttributes(fixture.root, .init(uid: alice, gid: alice), handle: nil, .library)
  }

  var library: Library { fixture.library }
  var clock: TestClock { fixture.clock }

  /// Runs a part of a story as one of them.
  @discardableResult
  func `as`<Value>(_ name: Name, process: Int32 = 0, _ body: (Person) throws -> Value) throws -> Value {
    try body(Person(library: library, name: name, process: process))
  }

  func finish() throws { try fixture.finish() }

  /// Runs a story and checks the library after it.
  static func story(_ body: (People) throws -> Void) throws {
    let people = try People()
    try body(people)
    try people.finish()
  }

  /// Shares something of alice's and has people join, with what they may do; returns the URL.
  @discardableResult
  func share(_ path: String, with people: [(Name, SharePermission)]) throws -> String {
    var url = ""
    for (name, permission) in people {
      url = try `as`(.alice) { try $0.share(path, with: [name], permission) }.url
      try `as`(name) { _ = try $0.accept(url) }
    }
    return url
  }
}

/// One person at the library, as a mount of theirs asks.
struct Person {
  let library: Library
  let name: People.Name
  let process: Int32

  var caller: Caller {
    get throws {
      Caller(
        uid: name.uid, gid: name.uid, umask: 0o022, thread: process, door: 0,
        account: try library.number(of: name.handle), user: .init(uid: name.uid, gid: name.uid)
      ) { [] }
    }
  }

  func path(_ text: String) throws -> ItemPath { try ItemPath(account: name.handle, text) }

  func inode(_ text: String) throws -> Int64 {
    let path = try path(text)
    return try library.locked { try library.resolve(path).ino }
  }

  private func place(_ text: String) throws -> (parent: Int64, name: [UInt8]) {
    let parts = text.split(separator: "/")
    return (try inode(parts.dropLast().joined(separator: "/")), Array((parts.last ?? "").utf8))
  }

  // MARK: - Files

  func open(_ text: String, _ flags: Int32) throws -> UInt64 {
    if flags & O_CREAT != 0 {
      let (parent, name) = try place(text)
      do {
        return try library.create(parent, name, mode: 0o644, flags: flags | O_EXCL, caller).handle
      } catch let error as SheafError where error.kind == .exists && flags & O_EXCL == 0 {}
    }
    return try library.open(try inode(text), flags: flags, caller)
  }

  func write(_ handle: UInt64, _ text: String, at offset: Int64 = 0) throws {
    try Array(text.utf8).withUnsafeBytes { try library.write(handle, at: offset, $0) }
  }

  func close(_ handle: UInt64) throws {
    defer { try? library.release(handle) }
    try library.flush(handle)
  }

  func save(_ text: String, _ contents: String) throws {
    let handle =
      try text.hasPrefix("Shared/") && text.split(separator: "/").count == 3
      ? library.open(inode(text), flags: O_RDWR | O_TRUNC, caller) : open(text, O_RDWR | O_CREAT | O_TRUNC)
    try write(handle, contents)
    try close(handle)
  }

  func read(_ handle: UInt64) throws -> String {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try buffer.withUnsafeMutableBytes { try library.read(handle, at: 0, into: $0) }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  func read(_ text: String) throws -> String {
    let handle = try library.open(inode(text), flags: O_RDONLY, caller)
    defer { try? library.release(handle) }
    return try read(handle)
  }

  func mkdir(_ text: String) throws {
    let (parent, name) = try place(text)
    _ = try library.make(.folder, parent, name, mode: 0o755, caller)
  }

  func symlink(_ target: String, _ text: String) throws {
    let (parent, name) = try place(text)
    _ = try library.make(.symbolicLink(target: Array(target.utf8)), parent, name, mode: 0, caller)
  }

  func readLink(_ text: String) throws -> String {
    String(decoding: try library.readLink(inode(text), caller), as: UTF8.self)
  }

  func link(_ text: String, _ new: String) throws {
    let (parent, name) = try place(new)
    _ = try library.link(inode(text), parent, name, caller)
  }

  func unlink(_ text: String) throws {
    let (parent, name) = try place(text)
    try library.unlink(parent, name, caller)
  }

  func rmdir(_ text: String) throws {
    let (parent, name) = try place(text)
    try library.rmdir(parent, name, caller)
  }

  func rename(_ text: String, _ to: String) throws {
    let (parent, name) = try place(text)
    let (newParent, newName) = try place(to)
    try library.rename(parent, name, to: newParent, newName, .replace, caller)
  }

  func exchange(_ text: String, _ to: String) throws {
    let (parent, name) = try place(text)
    let (newParent, newName) = try place(to)
    try library.rename(parent, name, to: newParent, newName, .exchange, caller)
  }

  func change(_ text: String, _ change: Library.AttributeChange) throws -> Attributes {
    try library.setAttributes(inode(text), change, handle: nil, caller)
  }

  func status(_ text: String) throws -> Attributes { try library.attributes(inode(text), caller) }

  func names(_ text: String) throws -> [String] {
    try library.list(inode(text), after: 0, limit: 1000, caller).map { String(decoding: $0.name, as: UTF8.self) }
      .sorted()
  }

  func attribute(_ attribute: String, _ text: String) throws -> String {
    String(decoding: try library.xattr(inode(text), Array("user.sheaf.\(attribute)".utf8), caller), as: UTF8.self)
  }

  // MARK: - Shared

  /// The entries of `Shared/OWNER/`.
  func entries(_ owner: People.Name) throws -> [String] {
    try library.sharedEntries(library.number(of: name.handle), owner: library.number(of: owner.handle))
      .map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  func renameEntry(
    _ owner: People.Name, _ from: String, _ to: String, _ mode: Library.RenameMode = .replace
  ) throws {
    try library.renameSharedEntry(
      library.number(of: name.handle), owner: library.number(of: owner.handle), Array(from.utf8), to: Array(to.utf8),
      mode, caller)
  }

  func removeEntry(_ owner: People.Name, _ entry: String) throws {
    try library.removeSharedEntry(
      library.number(of: name.handle), owner: library.number(of: owner.handle), Array(entry.utf8), caller)
  }

  /// Makes an entry of `Shared/OWNER` as open(2) with O_CREAT does, and writes it.
  func create(_ owner: People.Name, _ entry: String, _ contents: String) throws {
    let handle = try library.createShared(
      library.number(of: name.handle), owner: library.number(of: owner.handle), Array(entry.utf8), mode: 0o644,
      flags: O_CREAT | O_EXCL | O_WRONLY, caller
    ).handle
    try write(handle, contents)
    try close(handle)
  }

  @discardableResult
  func share(
    _ text: String, with people: [People.Name] = [], _ permission: SharePermission? = nil,
    _ body: (inout ShareChange) -> Void = { _ in }
  ) throws -> Share {
    var change = ShareChange()
    change.with = people.map(\.handle)
    change.permission = permission
    body(&change)
    return try library.share(path(text), change)
  }

  func accept(_ url: String) throws -> AcceptResult { try library.accept(url, as: name.handle) }

  func inspect(_ url: String) throws -> ShareOffer { try library.inspect(url, as: name.handle) }

  func participants(_ text: String) throws -> [Participant] { try library.participants(path(text)) }

  func remove(_ text: String, _ who: People.Name) throws { try library.removeParticipant(path(text), who.handle) }

  func set(_ text: String, _ who: People.Name, _ permission: SharePermission? = nil, role: Role? = nil) throws {
    _ = try library.setParticipant(
      path(text), ParticipantChange(handle: who.handle, permission: permission, role: role))
  }

  func add(_ text: String, _ who: People.Name, _ permission: SharePermission? = nil, role: Role? = nil) throws {
    _ = try library.addParticipant(
      path(text), ParticipantChange(handle: who.handle, permission: permission, role: role))
  }

  func versions(_ text: String) throws -> [Version] { try library.versions(path(text)) }
}

/// Expects a failure of one kind.
func expect(
  _ kind: SheafError.Kind, _ location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("expected \(kind), and it succeeded", sourceLocation: location)
  } catch let error as SheafError {
    #expect(error.kind == kind, "\(error)", sourceLocation: location)
  } catch {
    Issue.record("\(error)", sourceLocation: location)
  }
}

import ConformanceKit
import Foundation
import Glibc

/// The contents that a folder should have after the actions, or does have.
public struct TreeModel: Hashable, Sendable {
  public enum Node: Hashable, Sendable {
    /// A document: the number of its file, which hard links share.
    case file(Int)
    case folder(mode: UInt32, mark: String?)
    case symlink(String)
  }

  /// Bytes that are compared by their fingerprint.
  struct Bytes: Hashable, Sendable {
    let all: [UInt8]
    let print: UInt64

    init(_ all: [UInt8]) {
      self.all = all
      print = fingerprint(all)
    }

    static func == (left: Bytes, right: Bytes) -> Bool { left.print == right.print }
    func hash(into hasher: inout Hasher) { hasher.combine(print) }
  }

  struct File: Hashable, Sendable {
    var contents: Bytes
    var bytes: [UInt8] {
      get { contents.all }
      set { contents = Bytes(newValue) }
    }
    var mode: UInt32 = 0o644
    var mark: String?
    /// The modification time, only if it was set.
    var time: Int?
  }

  var nodes: [String: Node] = [:]
  var files: [Int: File] = [:]
  private var next = 0
  public init() {}

  private mutating func add(_ name: String, _ bytes: [UInt8]) {
    files[next] = File(contents: Bytes(bytes))
    nodes[name] = .file(next)
    next += 1
  }

  func number(_ name: String) -> Int? {
    guard case .file(let number) = nodes[name] else { return nil }
    return number
  }

  mutating func set(_ name: String, _ bytes: [UInt8]) {
    guard let number = number(name) else { return add(name, bytes) }
    files[number]!.bytes = bytes
    files[number]!.time = nil
  }

  private mutating func drop(_ name: String) {
    guard let node = nodes.removeValue(forKey: name) else { return }
    if case .file(let number) = node, !nodes.values.contains(node) { files[number] = nil }
  }

  /// The errno that an action must return here: 0 for success.
  func answer(to action: Action) -> Int32 {
    switch action {
    case .save(let name, _), .append(let name, _), .replace(let name, _), .revive(_, let name, _),
      .scatter(let name, _):
      if case .folder = nodes[name] { return EISDIR }
      return 0
    case .patch(let name, _, _), .truncate(let name, _), .read(let name), .removeElsewhere(let name):
      return number(name) == nil ? ENOENT : 0
    case .unlink(let name), .chmod(let name, _), .mark(let name, _), .touch(let name, _):
      return nodes[name] == nil ? ENOENT : 0
    case .unmark(let name):
      return nodes[name] == nil ? ENOENT : mark(name) == nil ? ENODATA : 0
    case .rename(let from, _): return nodes[from] == nil ? ENOENT : 0
    case .link(let existing, let new): return nodes[existing] == nil ? ENOENT : nodes[new] != nil ? EEXIST : 0
    case .mkdir(let name), .symlink(_, let name): return nodes[name] == nil ? 0 : EEXIST
    case .rmdir(let name): return nodes[name] == nil ? ENOENT : 0
    case .command, .pause: return 0
    }
  }

  private func mark(_ name: String) -> String? {
    switch nodes[name] {
    case .file(let number): files[number]!.mark
    case .folder(_, let mark): mark
    default: nil
    }
  }

  /// The tree after an action that succeeded.
  func after(_ action: Action) -> TreeModel {
    var tree = self
    switch action {
    case .save(let name, let contents), .revive(_, let name, let contents): tree.set(name, contents.bytes)
    case .replace(let name, let contents):
      // The document keeps its mode and mark; another name of the old file keeps the old contents.
      var file = number(name).map { files[$0]! } ?? File(contents: Bytes([]))
      (file.bytes, file.time) = (contents.bytes, nil)
      tree.drop(name)
      tree.add(name, [])
      tree.files[tree.number(name)!] = file
      tree.drop(name + ".tmp")
    case .append(let name, let contents): tree.set(name, tree.bytes(name) + contents.bytes)
    case .patch(let name, let offset, let contents): tree.set(name, tree.patched(name, offset, contents.bytes))
    case .truncate(let name, let size):
      let bytes = tree.bytes(name)
      tree.set(name, Array(bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - bytes.count)))
    case .scatter(let name, let count): tree.set(name, Action.scattered(count))
    case .unlink(let name), .rmdir(let name), .removeElsewhere(let name): tree.drop(name)
    case .rename(let from, let to):
      guard from != to, nodes[from] != nodes[to] else { break }
      tree.drop(to)
      tree.nodes[to] = tree.nodes.removeValue(forKey: from)
    case .link(let existing, let new): tree.nodes[new] = tree.nodes[existing]
    case .mkdir(let name): tree.nodes[name] = .folder(mode: 0o755, mark: nil)
    case .symlink(let target, let name): tree.nodes[name] = .symlink(target)
    case .chmod(let name, let mode): tree.change(name, mode: mode)
    case .mark(let name, let value): tree.change(name, mark: .some(value))
    case .unmark(let name): tree.change(name, mark: .some(nil))
    case .touch(let name, let seconds):
      if let number = number(name) { tree.files[number]!.time = seconds }
    case .command, .pause, .read: break
    }
    return tree
  }

  private mutating func change(_ name: String, mode: UInt32? = nil, mark: String?? = nil) {
    switch nodes[name] {
    case .file(let number):
      if let mode { files[number]!.mode = mode }
      if let mark { files[number]!.mark = mark }
    case .folder(let oldMode, let oldMark):
      nodes[name] = .folder(mode: mode ?? oldMode, mark: mark ?? oldMark)
    default: break
    }
  }

  func bytes(_ name: String) -> [UInt8] { number(name).map { files[$0]!.bytes } ?? [] }

  private func patched(_ name: String, _ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
    var all = self.bytes(name)
    guard !bytes.isEmpty else { return all }
    if all.count < offset + bytes.count {
      all += [UInt8](repeating: 0, count: offset + bytes.count - all.count)
    }
    all.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return all
  }

  /// Every tree that may be found when an action was under way: untouched, done, or between two of its system calls.
  ///
  /// - Parameters:
  ///   - killed: the program itself was killed. The kernel then ends its write(2) at a border of pages
  ///     (generic_perform_write()).
  ///   - found: the tree that is there, where it is known.
  func during(_ action: Action, killed: Bool = false, found: FoundTree? = nil) -> [TreeModel] {
    var trees = [self]
    func add(_ name: String, _ base: (Int) -> [UInt8], _ count: Int, at offset: Int = 0) {
      var ends = Set(stride(from: 0, to: count, by: Action.piece)).union([count])
      if killed { ends.formUnion((0..<count).lazy.filter { (offset + $0).isMultiple(of: 4096) }) }
      for end in ends.sorted() {
        var tree = self
        tree.set(name, base(end))
        trees.append(tree)
      }
    }
    switch action {
    case .save(let name, let contents):
      let bytes = contents.bytes
      add(name, { Array(bytes[..<$0]) }, bytes.count)
    case .replace(let name, let contents):
      let bytes = contents.bytes
      add(name + ".tmp", { Array(bytes[..<$0]) }, bytes.count)
    case .append(let name, let contents):
      let (old, bytes) = (self.bytes(name), contents.bytes)
      add(name, { old + bytes[..<$0] }, bytes.count, at: old.count)
    case .patch(let name, let offset, let contents):
      let bytes = contents.bytes
      add(name, { patched(name, offset, Array(bytes[..<$0])) }, bytes.count, at: offset)
    case .scatter(let name, let count):
      // Nothing, or the bytes that were there when the working copy spilled, or, where all of it takes more than a
      // second, when the library kept what was unsaved.
      let kept = found?.sizes[name].flatMap { ($0 + 9).isMultiple(of: 10) ? min(($0 + 9) / 10, count) : nil }
      for end in [0, min(4095, count), min(4096, count)] + (kept.map { [$0] } ?? []) {
        add(name, { _ in Action.scattered(end) }, 0)
      }
    default: break
    }
    if answer(to: action) == 0 { trees.append(after(action)) }
    return trees
  }
}

import ConformanceKit
import Foundation
import Glibc

extension TreeModel {
  /// The faults of a folder, one on each line; empty if it holds exactly this.
  public func differences(from found: FoundTree) -> [String] {
    var lines: [String] = []
    for name in Set(nodes.keys).union(found.nodes.keys).sorted() {
      let (expected, actual) = (describe(name), found.nodes[name])
      if expected.text != actual?.text { lines.append("\(name): \(actual?.text ?? "missing"), not \(expected.text)") }
      if let time = expected.time, let actual, actual.time != time {
        lines.append("\(name): its time is \(actual.time ?? 0), not \(time)")
      }
    }
    return lines
  }

  private func describe(_ name: String) -> FoundTree.Node {
    switch nodes[name] {
    case .none: FoundTree.Node(text: "missing", time: nil)
    case .symlink(let target): FoundTree.Node(text: "a link to \(target)", time: nil)
    case .folder(let mode, let mark): FoundTree.Node(text: "a folder \(octal(mode)) \(mark ?? "-")", time: nil)
    case .file(let number):
      FoundTree.Node(
        text: FoundTree.describe(files[number]!, links: nodes.values.count { $0 == nodes[name] }),
        time: files[number]!.time)
    }
  }
}

/// The contents of a folder.
public struct FoundTree: Sendable {
  struct Node: Hashable, Sendable {
    var text: String
    var time: Int?
  }

  let nodes: [String: Node]
  /// Bytes of the files.
  let sizes: [String: Int]

  /// Reads a folder that has no folders with anything in them.
  public init(_ folder: String) throws {
    var nodes: [String: Node] = [:]
    var sizes: [String: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      let path = "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else { throw Errno(errno, "lstat \(path)") }
      let mode = status.st_mode & 0o7777
      switch status.st_mode & S_IFMT {
      case S_IFLNK:
        nodes[name] = Node(
          text: "a link to \(try FileManager.default.destinationOfSymbolicLink(atPath: path))", time: nil)
      case S_IFDIR: nodes[name] = Node(text: "a folder \(octal(mode)) \(Attributes.get(path) ?? "-")", time: nil)
      default:
        let file = TreeModel.File(
          contents: TreeModel.Bytes(try Self.contents(of: path)), mode: mode, mark: Attributes.get(path))
        sizes[name] = file.bytes.count
        let text = FoundTree.describe(file, links: Int(status.st_nlink))
        nodes[name] = Node(text: text, time: status.st_mtim.tv_sec)
      }
    }
    self.nodes = nodes
    self.sizes = sizes
  }

  /// Data(contentsOf:) would give the open file to programs that another thread starts meanwhile.
  private static func contents(of path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw Errno(errno, "open \(path)") }
    return Array(try FileHandle(fileDescriptor: file, closeOnDealloc: true).readToEnd() ?? Data())
  }

  static func describe(_ file: TreeModel.File, links: Int) -> String {
    let contents = "\(file.bytes.count) bytes #\(String(file.contents.print, radix: 16))"
    return "a file \(octal(file.mode)) \(file.mark ?? "-") \(links) links \(contents)"
  }
}

private func octal(_ mode: UInt32) -> String { String(mode, radix: 8) }

/// Judges a folder by the record of the actions in it.
public struct Judgement {
  /// The trees that the record allows.
  public private(set) var candidates: [TreeModel]

  public init(_ start: TreeModel) { candidates = [start] }

  /// Follows the record: actions that returned are done; actions that failed or had not returned may be done, undone or in
  /// between.
  ///
  /// - Parameters:
  ///   - killed: the program that kept the record was killed.
  ///   - found: the tree that is there, where it is known by now: of many states in between, that one is looked at.
  /// - Returns: a line for each answer that no allowed tree explains.
  public mutating func follow(
    _ record: [RecordedAction], killed: Bool = false, found: FoundTree? = nil
  ) -> [String] {
    var lines: [String] = []
    for entry in record {
      let before = candidates
      if let returned = entry.returned, ![EIO, ENOSPC].contains(returned) {
        candidates = before.filter { $0.answer(to: entry.action) == returned }
        if returned == 0 { candidates = candidates.map { $0.after(entry.action) } }
        if candidates.isEmpty {
          lines.append("\(entry.action) came back with \(Errno.name(returned)), which nothing explains")
          candidates = before
        }
      } else {
        candidates = before.flatMap { $0.during(entry.action, killed: killed, found: found) }
      }
      if candidates.count > 1 { candidates = Array(Set(candidates)) }
    }
    return lines
  }

  /// Settles on the tree that was found.
  ///
  /// - Returns: nothing, or how the nearest allowed tree differs.
  public mutating func settle(_ found: FoundTree) -> [String] {
    let judged = candidates.map { ($0, $0.differences(from: found)) }
    guard let best = judged.min(by: { $0.1.count < $1.1.count }) else { return ["no tree is allowed"] }
    candidates = [best.0]
    return best.1
  }
}

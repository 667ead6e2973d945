import Foundation
import SheafModel
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// Two machines of one person with libraries of their own, and the hub between them.
final class LibraryStory {
  var hub = SimulatedHub()
  let laptop: LibraryMachine
  let desktop: LibraryMachine

  private init() throws {
    laptop = try LibraryMachine("laptop")
    desktop = try LibraryMachine("desktop")
  }

  /// Tells a story; both libraries must be sound at its end.
  static func tell(_ body: (LibraryStory) throws -> Void) throws {
    let story = try LibraryStory()
    do {
      try body(story)
    } catch {
      for machine in [story.laptop, story.desktop] { try? machine.finish() }
      throw error
    }
    for machine in [story.laptop, story.desktop] { try machine.finish() }
  }

  /// One machine is connected until it has nothing left to do.
  func connect(_ machine: LibraryMachine) throws {
    machine.rest()
    var steps = 0
    while try machine.step(&hub, losesAnswer: false) {
      steps += 1
      guard steps < 500 else {
        throw LibraryMachine.Broken(
          description: "\(machine.name) comes to no rest: \(machine.stages.suffix(8).joined(separator: "\n"))")
      }
    }
  }

  /// Both machines are connected until nothing is left to do, and show the same then.
  func sync() throws {
    var verdicts = -1
    while verdicts != laptop.outcomes.count + desktop.outcomes.count {
      verdicts = laptop.outcomes.count + desktop.outcomes.count
      for machine in [laptop, desktop, laptop] { try connect(machine) }
    }
    try hub.zone.check()
    let expected = hub.shown()
    for machine in [laptop, desktop] {
      let shown = try machine.shown()
      let paths = Set(shown.keys).union(expected.keys).filter { shown[$0] != expected[$0] }.sorted()
      #expect(
        paths.isEmpty, "\(machine.name): \(paths.map { "\($0): \(shown[$0] ?? "-"), hub \(expected[$0] ?? "-")" })")
    }
  }

  var paths: [String] { hub.shown().keys.sorted() }

  /// The contents under a name at both machines.
  func text(_ path: String) throws -> String? {
    let texts = try [laptop, desktop].map { machine in try machine.inode(path).map { try machine.text($0) } }
    #expect(texts[0] == texts[1], "\(path)")
    return texts[0]
  }
}

/// What people and their programs do at a machine, by paths.
extension LibraryMachine {
  private func split(_ path: String) throws -> (folder: Int64, name: [UInt8]) {
    var names = path.split(separator: "/").map(String.init)
    let name = names.removeLast()
    guard let folder = try inode(names.joined(separator: "/")) else { throw Broken(description: "no \(path)") }
    return (folder, Array(name.utf8))
  }

  func save(_ text: String, at path: String, by caller: Caller? = nil) throws {
    let (folder, name) = try split(path)
    try save(text, folder, String(decoding: name, as: UTF8.self), caller ?? other)
  }

  func makeFolder(_ path: String) throws {
    let (folder, name) = try split(path)
    _ = try library.make(.folder, folder, name, mode: 0o755, other)
  }

  func makeLink(_ path: String, to target: String) throws {
    let (folder, name) = try split(path)
    _ = try library.make(.symbolicLink(target: Array(target.utf8)), folder, name, mode: 0o777, other)
  }

  func move(
    _ path: String, to new: String, _ mode: Library.RenameMode = .noReplace, by caller: Caller? = nil
  ) throws {
    let ((folder, name), (newFolder, newName)) = (try split(path), try split(new))
    _ = try library.rename(folder, name, to: newFolder, newName, mode, caller ?? other)
  }

  /// Removes something with all that is in it.
  func remove(_ path: String, by caller: Caller? = nil) throws {
    let caller = caller ?? other
    var (open, next) = ([path], 0)
    while next < open.count {
      if let ino = try inode(open[next]), try library.attributes(ino, caller).mode & S_IFMT == S_IFDIR {
        open += try library.list(ino, after: 0, limit: 10_000, caller).map {
          "\(open[next])/\(String(decoding: $0.name, as: UTF8.self))"
        }
      }
      next += 1
    }
    for path in open.reversed() {
      let (folder, name) = try split(path)
      if let ino = try inode(path), try library.attributes(ino, caller).mode & S_IFMT == S_IFDIR {
        _ = try library.rmdir(folder, name, caller)
      } else {
        try library.unlink(folder, name, caller)
      }
    }
  }

  func id(_ path: String) throws -> WireID? {
    guard let ino = try inode(path) else { return nil }
    return try library.locked { try library.item(of: library.inode(ino)).map { WireID($0.uuid) } }
  }
}

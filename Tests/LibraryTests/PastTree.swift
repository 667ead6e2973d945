import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// A tree as text: the contents of each document, `-> TARGET` of each symbolic link and `/` of each folder, by path.
typealias TreeText = [String: String]

extension Person {
  /// A folder with all below it as it was, walked as a mount does; listings and look-ups have to agree.
  func past(_ folder: Int64, at time: Timestamp) throws -> TreeText {
    _ = try library.pastFolder(folder, at: time, caller)
    var tree: TreeText = [:]
    var open = [(ino: folder, path: "")]
    while let (ino, path) = open.popLast() {
      for entry in try library.pastEntries(of: ino, below: folder, at: time, caller) {
        let place = path + (path.isEmpty ? "" : "/") + String(decoding: entry.name, as: UTF8.self)
        #expect(try library.pastEntry(ino, entry.name, below: folder, at: time, caller) == entry)
        #expect(tree[place] == nil, "twice: \(place)")
        switch entry.kind {
        case .folder(let ino):
          tree[place] = "/"
          open.append((ino, place))
        case .symbolicLink(let ino):
          tree[place] = "-> " + String(decoding: try library.pastLink(ino, caller).target, as: UTF8.self)
        case .document(let item, let version):
          tree[place] = try read(try library.openVersion(of: item, number: version, caller))
        }
      }
    }
    return tree
  }

  private func read(_ reader: VersionReader) throws -> String {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  /// A folder with all below it as it is.
  func present(_ folder: String) throws -> TreeText {
    var tree: TreeText = [:]
    var open = [""]
    while let path = open.popLast() {
      for name in try names(folder + "/" + path) {
        let place = path + (path.isEmpty ? "" : "/") + name
        let full = folder + "/" + place
        switch try status(full).mode & S_IFMT {
        case S_IFDIR:
          tree[place] = "/"
          open.append(place)
        case S_IFLNK: tree[place] = "-> " + (try readLink(full))
        default: tree[place] = try read(full)
        }
      }
    }
    return tree
  }
}

/// Random actions of two people in a shared folder, with what the folder held after each.
struct PastStory {
  private(set) var tree: TreeText = [:]
  /// What the folder held from each time on.
  private(set) var moments: [(time: Timestamp, tree: TreeText)] = []
  private let people: People
  private let folders: [People.Name: String]

  /// - Parameter folders: the folder in each one's mount.
  init(_ people: People, _ folders: [People.Name: String]) {
    self.people = people
    self.folders = folders
    moments.append((people.clock.now, tree))
  }

  /// Does something, some seconds after what was before.
  mutating func step(_ random: inout some RandomNumberGenerator) throws {
    people.clock.advance(Int64.random(in: 1...12, using: &random))
    let who: People.Name = Bool.random(using: &random) ? .alice : .bob
    let folder = folders[who]! + "/"
    let names = ["a", "b", "c.md", "d"]
    let around = (tree.filter { $0.value == "/" }.keys.sorted() + [""]).randomElement(using: &random)!
    let place = (around.isEmpty ? "" : around + "/") + names.randomElement(using: &random)!
    try people.as(who) { person in
      if let value = tree[place] {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          let other = (tree.keys.sorted()).randomElement(using: &random)!
          if !place.hasPrefix(other), !other.hasPrefix(place), Bool.random(using: &random) {
            try person.exchange(folder + place, folder + other)
            let (one, another) = (below(place), below(other))
            for path in one + another { tree[path.path] = nil }
            for part in one { tree[other + part.rest] = part.value }
            for part in another { tree[place + part.rest] = part.value }
          }
        case 1:
          let target = (tree.filter { $0.value == "/" }.keys.sorted() + [""]).randomElement(using: &random)!
          let new = (target.isEmpty ? "" : target + "/") + names.randomElement(using: &random)!
          let isOnto = tree[new].map { $0 != "/" && value != "/" } ?? true
          if isOnto, new != place, !(new + "/").hasPrefix(place + "/") {
            if tree[new] != nil {
              // What was just made would be how somebody saves the other one, and was never there.
              people.clock.advance(60)
              people.library.expireIdentity()
            }
            try person.rename(folder + place, folder + new)
            let moved = below(place)
            for part in moved { tree[part.path] = nil }
            for part in moved { tree[new + part.rest] = part.value }
          }
        case 2:
          for part in below(place).sorted(by: { $0.path.utf8.count > $1.path.utf8.count }) {
            if part.value == "/" { try person.rmdir(folder + part.path) } else { try person.unlink(folder + part.path) }
            tree[part.path] = nil
          }
        default:
          guard value != "/", !value.hasPrefix("->") else { break }
          let text = "\(who) \(random.next() % 1000)"
          try person.save(folder + place, text)
          tree[place] = text
        }
      } else {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          try person.mkdir(folder + place)
          tree[place] = "/"
        case 1:
          try person.symlink("x\(random.next() % 10)", folder + place)
          tree[place] = "-> " + (try person.readLink(folder + place))
        default:
          let text = "\(who) new \(random.next() % 1000)"
          try person.save(folder + place, text)
          tree[place] = text
        }
      }
    }
    moments.append((people.clock.now, tree))
  }

  /// Notes what the folder holds after something else was done.
  mutating func note(_ tree: TreeText) {
    self.tree = tree
    moments.append((people.clock.now, tree))
  }

  /// What the folder held at a time that a name of `.versions/` can bear.
  func held(at time: Timestamp) -> TreeText { moments.last { $0.time <= time }?.tree ?? [:] }

  /// What is at a path and below it, with what follows that path in each.
  private func below(_ place: String) -> [(path: String, rest: String, value: String)] {
    tree.filter { $0.key == place || $0.key.hasPrefix(place + "/") }
      .map { ($0.key, String($0.key.dropFirst(place.count)), $0.value) }
  }
}

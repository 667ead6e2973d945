import Glibc

/// A difference in the behaviour of two file systems.
public struct Difference: Error, CustomStringConvertible {
  public let description: String
}

/// Applies one random sequence to a file system under test and to an oracle, and compares all their answers.
///
/// The same seed draws the same sequence. Both folders must be empty at first.
public final class Differential {
  private var random: SeededRandom
  private let oracle: World
  private var subject: World
  private var recent: [String] = []
  private var step = 0
  /// Marks that documents had when their names went, by place in the oracle.
  private var departed: [Place: [Marks]] = [:]
  /// Files that departed and live on under another name, by inode in the oracle: their former places and modes.
  private var movedAway: [UInt64: [(place: Place, mode: UInt32)]] = [:]
  /// Places that files were linked to, by inode in the oracle: once the first name is gone they can be a departed
  /// document. The folder may have another path by then.
  private var linked: [UInt64: Place] = [:]
  /// How often each allowed deviation was seen.
  public private(set) var seen: [AllowedDeviation: Int] = [:]

  public init(subject: any FileSystem, oracle: any FileSystem, seed: UInt64) {
    // Writing to a fifo without a reader is an errno here, not a signal.
    signal(SIGPIPE, SIG_IGN)
    random = SeededRandom(seed: seed)
    self.subject = World(subject)
    self.oracle = World(oracle)
  }

  /// Takes `steps` steps, and compares the trees every `interval` of them and at the end.
  public func run(steps: Int, comparingEvery interval: Int = 200) throws {
    for _ in 0..<steps {
      try take(Operation.random(using: &random))
      if step % interval == 0 { try compareTrees() }
    }
    try compareTrees()
  }

  /// Takes the steps of a list, as ``shrink`` found it.
  public func replay(_ operations: [Operation]) throws {
    for operation in operations {
      try take(operation)
      try compareTrees()
    }
  }

  /// Closes all handles and goes on with the same tree served anew.
  public func reopen(_ reopened: () throws -> any FileSystem) throws {
    try oracle.closeAll()
    try subject.closeAll()
    // Nothing of the test may be open on the mount while it goes: the folder's descriptor goes with the old world.
    subject = oracle
    subject = World(try reopened())
    recent.append("--- closed everything, mounted anew")
    try compareTrees()
  }

  public func closeAll() throws {
    try oracle.closeAll()
    try subject.closeAll()
  }

  private func take(_ operation: Operation) throws {
    step += 1
    let before = try Before(operation, oracle)
    let expected = try oracle.apply(operation)
    let actual = try subject.apply(operation)
    recent.append("\(step) \(operation): \(expected)")
    if recent.count > 40 { recent.removeFirst() }
    guard actual == expected else {
      throw difference("the mount answered \(actual), the oracle \(expected)")
    }
    if expected == "ok" { try settle(operation, before) }
  }

  /// Compares everything that both trees hold.
  public func compareTrees() throws {
    let (expected, actual) = (try oracle.tree(), try subject.tree())
    guard actual != expected else { return }
    let paths = Set(expected.keys).union(actual.keys).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    let lines = paths.filter { expected[$0] != actual[$0] }.prefix(5).map {
      "\($0): the mount has \(actual[$0] ?? "nothing"), the oracle \(expected[$0] ?? "nothing")"
    }
    throw difference("the trees differ:\n" + lines.joined(separator: "\n"))
  }

  private func difference(_ text: String) -> Difference {
    Difference(description: "step \(step): \(text)\nafter\n" + recent.joined(separator: "\n"))
  }

  /// The marks at a step's names before it.
  private struct Before {
    var source: Marks?
    var target: Marks?
    var sourceInode: UInt64?
    var targetInode: UInt64?
    var sourcePlace: Place?
    var targetPlace: Place?

    init(_ operation: Operation, _ oracle: World) throws {
      switch operation {
      case .rename(let from, let to, _):
        (source, target) = (try oracle.marks(from), try oracle.marks(to))
        (sourcePlace, targetPlace) = (oracle.place(from), oracle.place(to))
        (sourceInode, targetInode) = (try? oracle.system.lstat(from).inode, try? oracle.system.lstat(to).inode)
      case .unlink(let path):
        source = try oracle.marks(path)
        sourceInode = try? oracle.system.lstat(path).inode
        sourcePlace = oracle.place(path)
      case .open(_, let path, let flags, _) where flags & O_CREAT != 0:
        let resolved = oracle.resolved(path)
        target = try oracle.marks(resolved)
        targetPlace = oracle.place(resolved)
      default: break
      }
    }
  }

  /// Makes up for an allowed deviation: if the mount's marks are allowed, the oracle adopts them.
  private func settle(_ operation: Operation, _ before: Before) throws {
    switch operation {
    case .unlink:
      depart(before.sourcePlace, before.source)
      noteMovedAway(before)
      try settleLink(of: before.sourceInode)
    case .rename(let from, let to, let flags) where flags & exchange != 0:
      guard let source = before.source, let target = before.target else { return }
      // Attributes that came with the contents win, as in a replacement; a mode that was chosen does too.
      func staying(_ name: Marks, _ contents: Marks) -> [(Marks, AllowedDeviation)] {
        [name.mode, contents.mode].flatMap { mode in
          [
            (Marks(mode: mode, attributes: name.attributes), .exchangeSwapsContents),
            (Marks(mode: mode, attributes: contents.over(name)), .exchangeSwapsContents),
          ]
        }
      }
      try settle(to, staying(target, source), own: source)
      try settle(from, staying(source, target), own: target)
    case .rename(_, let to, _):
      if before.sourceInode != before.targetInode { try settleLink(of: before.targetInode) }
      guard let source = before.source, before.sourcePlace != before.targetPlace else { return }
      depart(before.sourcePlace, source)
      noteMovedAway(before)
      var allowed: [(Marks, AllowedDeviation)] = []
      if let target = before.target {
        allowed += variants(source, target, .replacementKeepsMode, .replacementKeepsAttributes)
      }
      for former in departed[before.targetPlace ?? Place(parent: 0, name: "")] ?? [] {
        allowed += variants(source, former, .recreationKeepsMode, .recreationKeepsAttributes)
      }
      depart(before.targetPlace, before.target)
      try settle(to, allowed, own: source)
    case .open(_, let named, _, _):
      let path = oracle.resolved(named)
      guard before.target == nil, let place = before.targetPlace, let own = try oracle.marks(path) else { return }
      let formers = departed[place] ?? []
      // The document's mode, with the execute bits that open(2) asked for.
      func again(_ former: UInt32) -> UInt32 {
        if own.mode & 0o111 == 0 { return former & ~0o111 }
        return former & 0o111 == 0 ? former | (former & 0o444) >> 2 : former
      }
      let allowed: [(Marks, AllowedDeviation)] = formers.flatMap { former in
        [
          (Marks(mode: own.mode, attributes: former.attributes), .recreationKeepsAttributes),
          (Marks(mode: again(former.mode), attributes: former.attributes), .recreationKeepsMode),
        ]
      }
      try settle(path, allowed, own: own)
    case .link(_, let path):
      if let inode = try? oracle.system.lstat(path).inode { linked[inode] = oracle.place(path) }
      try settleLink(path)
    case .setxattr(let path, _, _, _, _), .removexattr(let path, _):
      // Marks set on a document that moved away come back with it.
      guard let inode = try? oracle.system.stat(path).inode, let places = movedAway[inode] else { return }
      let attributes = try oracle.attributes(path)
      for (place, mode) in places { depart(place, Marks(mode: mode, attributes: attributes)) }
    default: break
    }
  }

  /// A file that lost its first name may be the departed document to whose name it was linked.
  private func settleLink(of inode: UInt64?) throws {
    guard let inode, let place = linked.removeValue(forKey: inode), let path = try oracle.path(of: place)
    else { return }
    try settleLink(path)
  }

  /// A file that was linked to the name of a departed document may be that.
  private func settleLink(_ path: Path) throws {
    guard let place = oracle.place(path), let own = try oracle.marks(path) else { return }
    let allowed = (departed[place] ?? []).flatMap {
      variants(own, $0, .recreationKeepsMode, .recreationKeepsAttributes)
    }
    try settle(path, allowed, own: own)
  }

  private func variants(
    _ own: Marks, _ other: Marks, _ mode: AllowedDeviation, _ attributes: AllowedDeviation
  ) -> [(Marks, AllowedDeviation)] {
    [
      (Marks(mode: own.mode, attributes: own.over(other)), attributes),
      (Marks(mode: other.mode, attributes: own.attributes), mode),
      (Marks(mode: other.mode, attributes: own.over(other)), attributes),
    ]
  }

  private func noteMovedAway(_ before: Before) {
    guard let inode = before.sourceInode, let place = before.sourcePlace, let marks = before.source else { return }
    movedAway[inode, default: []].append((place, marks.mode))
  }

  private func depart(_ place: Place?, _ marks: Marks?) {
    guard let place, let marks else { return }
    departed[place, default: []].append(marks)
  }

  private func settle(_ path: Path, _ allowed: [(Marks, AllowedDeviation)], own: Marks) throws {
    guard let actual = try subject.marks(path), let expected = try oracle.marks(path), actual != expected else {
      return
    }
    guard let match = allowed.first(where: { $0.0 == actual }) else {
      throw difference("\(path) has the marks \(actual) in the mount, \(expected) in the oracle; none allows that")
    }
    seen[match.1, default: 0] += 1
    try oracle.adopt(actual, at: path)
  }
}

extension Differential {
  /// The operations that a seed draws.
  public static func operations(seed: UInt64, steps: Int) -> [Operation] {
    var random = SeededRandom(seed: seed)
    return (0..<steps).map { _ in Operation.random(using: &random) }
  }

  /// Leaves out steps as long as the others still show a difference.
  ///
  /// - Parameter attempt: runs a list in two new folders and tells whether it shows one.
  public static func shrink(_ operations: [Operation], _ attempt: ([Operation]) -> Bool) -> [Operation] {
    var kept = operations
    var size = max(kept.count / 2, 1)
    while true {
      var index = 0
      while index < kept.count {
        let shorter = Array(kept[..<index] + kept[min(index + size, kept.count)...])
        if attempt(shorter) { kept = shorter } else { index += size }
      }
      guard size > 1 else { return kept }
      size /= 2
    }
  }
}

extension Differential {
  /// Makes the folder to work in, far below `place`: links upwards lead out of it, and must lead to the same in both
  /// worlds.
  public static func makeRoot(in place: String) throws -> String {
    var path = place
    for _ in 0..<8 {
      path += "/below"
      guard mkdir(path, 0o755) == 0 else { throw Errno(errno, "mkdir \(path)") }
    }
    return path
  }
}

import SheafModel

/// Makes random programs: few names in few folders, so that what is done collides.
struct ProgramGenerator {
  /// What is there when a step is made.
  struct Scene {
    var documents: [String] = []
    var folders: [String] = []
    /// Where things were that are among the deleted.
    var deleted: [String] = []
    /// What is shared by itself.
    var shares: [String] = []
    /// The number of the last version of each document.
    var versions: [String: Int64] = [:]
    /// Those of them that others see.
    var shared: Set<String> = []
    /// Slots that are open.
    var slots: [Int] = []
  }

  private var random: SeededRandom
  private var opening: [ProgramStep] = []
  /// What this program does often, seldom and never: programs that do everything alike seldom do one thing twice in a
  /// row.
  private var verbs: [(ProgramStep.Verb, Int)] = Self.verbs
  /// Folders in which most happens, as people are busy in few places.
  private var places: [String] = []

  private static let actors: [(ProgramStep.Actor, Int)] = [
    (.init(person: .alice, program: 0), 10), (.init(person: .alice, program: 1), 4),
    (.init(person: .alice, program: 3), 2), (.init(person: .bob, program: 2), 5), (.init(person: .bob, program: 0), 2),
    (.init(person: .carol, program: 1), 1),
  ]

  private static let verbs: [(ProgramStep.Verb, Int)] = [
    (.open, 18), (.write, 9), (.append, 6), (.writeKnown, 6), (.read, 7), (.truncate, 2), (.fsync, 4), (.flush, 2),
    (.close, 16), (.save, 18), (.rename, 26), (.exchange, 4), (.link, 3), (.unlink, 8), (.mkdir, 4), (.rmdir, 2),
    (.recover, 6), (.share, 2), (.unshare, 1), (.invite, 3), (.remove, 1), (.leave, 1), (.label, 2), (.restore, 2),
    (.resolve, 1), (.purge, 2), (.purgeVersion, 2), (.look, 3), (.upkeep, 4), (.wait, 5), (.restart, 1), (.crash, 1),
    (.mapped, 3), (.rewrite, 3), (.peek, 3), (.compact, 1), (.takeOut, 4), (.goBack, 3), (.empty, 1), (.give, 2),
  ]

  /// Without these nothing happens.
  private static let basic: Set<ProgramStep.Verb> = [.open, .write, .close, .save, .rename]

  private static let folderNames = ["draft", "team", "sub"]
  private static let names = ["doc", "doc", "doc", "t", "u", "doc.bak", ".doc.tmp", ".doc.swp"]

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    if chance(2, of: 3) {
      verbs = verbs.map { ($0.0, $0.1 * pick(Self.basic.contains($0.0) ? [1, 1, 3] : [0, 1, 1, 5])) }
    }
    guard chance(4, of: 5) else { return }
    var lines = ["alice.0 mkdir team"]
    if chance(3, of: 4) { lines += ["alice.0 mkdir draft", "alice.0 mkdir draft/sub"] }
    if chance(4, of: 5) { lines.append("alice.0 invite team bob edit") }
    if chance(1, of: 4) { lines.append("alice.0 invite team carol view") }
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      // Something with a history enters a share.
      lines += ["alice.0 save draft/sub/doc", "alice.0 save draft/sub/u", "alice.0 wait 16"]
      lines += ["alice.0 save draft/sub/doc", "alice.0 unlink draft/sub/u", "alice.0 rename draft team/draft"]
    case 1:
      // Two people have one document open.
      lines += ["alice.1 save team/doc", "alice.0 open 0 team/doc rw", "alice.0 read 0", "bob.2 open 1 team/doc rw"]
    default: break
    }
    opening = ProgramStep.program(lines.joined(separator: "\n")).reversed()
  }

  mutating func step(_ scene: Scene) -> ProgramStep {
    if let step = opening.popLast() { return step }
    if places.isEmpty || chance(1, of: 20) { places = (0..<2).map { _ in pick([""] + scene.folders) } }
    let actor = weighted(Self.actors)
    var scene = scene
    if actor.person != .alice, !scene.shared.isEmpty, !chance(1, of: 20) {
      let own = "@\(actor.person.rawValue)"
      scene.documents.removeAll { !scene.shared.contains($0) && !$0.hasPrefix(own) }
      scene.folders.removeAll { !scene.shared.contains($0) && !$0.hasPrefix(own) }
    }
    return step(weighted(verbs), actor, scene)
  }

  private mutating func step(_ verb: ProgramStep.Verb, _ actor: ProgramStep.Actor, _ scene: Scene) -> ProgramStep {
    switch verb {
    case .open:
      let slot = (0..<3).first { !scene.slots.contains($0) } ?? 0
      let how = pick(["r", "rw", "rw", "creat", "creat", "trunc"])
      return .init(actor, verb, ["\(slot)", chance(3, of: 4) ? document(scene) : newPath(scene), how])
    case .write, .append, .writeKnown, .rewrite, .mapped, .read, .truncate, .fsync, .flush, .close:
      return .init(actor, verb, ["\(scene.slots.isEmpty ? 0 : pick(scene.slots))"])
    case .save: return .init(actor, verb, [chance(1, of: 3) ? document(scene) : newPath(scene)])
    case .rename, .exchange:
      if chance(1, of: 4), !scene.folders.isEmpty {
        let into = pick([""] + scene.folders)
        let target = chance(1, of: 3) ? pick(scene.folders) : join(into, pick(Self.folderNames))
        return .init(actor, verb, [pick(scene.folders), target])
      }
      let target = verb == .exchange || chance(1, of: 3) ? document(scene) : newPath(scene)
      return .init(actor, verb, [document(scene), target])
    case .link: return .init(actor, verb, [document(scene), newPath(scene)])
    case .mkdir: return .init(actor, verb, [join(pick([""] + scene.folders), pick(Self.folderNames))])
    case .rmdir: return .init(actor, verb, [pick(scene.folders + ["sub"])])
    case .share: return .init(actor, verb, [pick(["team", "team", "draft", document(scene)])])
    case .unshare:
      let what = shared(scene)
      return .init(owner(of: what), verb, [what])
    case .give:
      let what = chance(1, of: 2) ? document(scene) : pick(scene.folders + ["team"])
      let other = owner(of: what).person == .alice ? "bob" : "alice"
      let person = pick([other, other, "carol"])
      return .init(owner(of: what), verb, [what, person])
    case .leave: return .init(.init(person: pick([.bob, .carol]), program: actor.program), verb, [shared(scene)])
    case .invite:
      let what = pick(["team", "team", "draft", document(scene)])
      return .init(actor, verb, [what, pick(["bob", "carol"]), pick(["edit", "view"])])
    case .remove:
      let what = shared(scene)
      return .init(owner(of: what), verb, [what, pick(["alice", "bob", "carol"])])
    case .takeOut:
      let deleted = pick(scene.deleted + ["doc"]).split(separator: "/").map(String.init)
      return .init(actor, verb, [deleted.dropLast().joined(separator: "/"), deleted.last ?? "", newPath(scene)])
    case .goBack:
      return .init(actor, verb, [pick([""] + scene.folders), pick(["4", "20", "100", "2000", "20000", "70000"])])
    case .empty:
      let what = pick([""] + scene.folders)
      return .init(owner(of: what), verb, [what])
    case .restore, .purgeVersion, .peek:
      let path = document(scene)
      return .init(actor, verb, [path, "\(Int64.random(in: 1...max(1, scene.versions[path] ?? 1), using: &random))"])
    case .recover:
      // Also the parts of a folder that is there.
      let what = chance(1, of: 3) ? pick(Self.folderNames + scene.folders) : pick(scene.deleted + [newPath(scene)])
      return .init(actor, verb, [what])
    case .purge:
      let what = chance(1, of: 2) ? document(scene) : pick(scene.folders + scene.deleted + [newPath(scene)])
      return .init(actor, verb, [what])
    case .wait: return .init(actor, verb, [pick(["2", "16", "16", "60"])])
    case .look: return .init(.init(person: pick([.alice, .bob, .carol]), program: 2), verb)
    case .upkeep, .compact, .restart, .crash: return .init(actor, verb)
    case .unlink, .label, .resolve: return .init(actor, verb, [document(scene)])
    }
  }

  /// The one who may do what only the owner of a path may.
  private func owner(of path: String) -> ProgramStep.Actor {
    .init(person: ProgramWorld.parts(path).owner, program: 0)
  }

  private mutating func shared(_ scene: Scene) -> String { pick(scene.shares.isEmpty ? ["team"] : scene.shares) }

  private mutating func document(_ scene: Scene) -> String {
    scene.documents.isEmpty ? newPath(scene) : pick(scene.documents)
  }

  private mutating func newPath(_ scene: Scene) -> String {
    join(chance(4, of: 5) ? pick(places) : pick([""] + scene.folders), pick(Self.names))
  }

  private func join(_ folder: String, _ name: String) -> String { folder.isEmpty ? name : folder + "/" + name }

  private mutating func chance(_ part: Int, of whole: Int) -> Bool { Int.random(in: 0..<whole, using: &random) < part }

  private mutating func pick<Value>(_ values: [Value]) -> Value {
    values[Int.random(in: 0..<values.count, using: &random)]
  }

  private mutating func weighted<Value>(_ values: [(Value, Int)]) -> Value {
    var rest = Int.random(in: 0..<values.reduce(0) { $0 + $1.1 }, using: &random)
    for (value, weight) in values {
      rest -= weight
      if rest < 0 { return value }
    }
    return values[0].0
  }
}

import ConformanceKit
import Foundation
import SheafModel
import SheafWire
import Testing

@testable import SheafLibrary

/// Libraries that are replicas of one zone, and a hub in memory by the hub's own rules.
@Suite struct LibraryReplicaTests {
  static let environment = ProcessInfo.processInfo.environment
  static let seed = environment["SHEAF_SEED"].flatMap { UInt64($0) }
  static let histories = environment["SHEAF_STEPS"].flatMap { UInt64($0) }
  /// Those that found something once.
  private static let former: [UInt64] = [
    85, 131, 137, 259, 260, 1_794, 2_208, 42_006, 51_175, 60_396, 81_178, 81_676, 101_747,
  ]
  /// `SHEAF_STEPS` of them from `SHEAF_SEED` on; without it that one alone, or those of every run.
  private static var seeds: [UInt64] {
    if let seed { return Array(seed..<seed + (histories ?? 1)) }
    return Array(1..<1 + (histories ?? 60)) + former
  }

  @Test func allLibrariesEndWithTheSameTree() throws { try run(.everything) }

  @Test func whatIsExchangedAndRemovedAtOnceIsToldToAll() throws { try run(.exchanges) }

  @Test func powerLossAndBackupsLoseNothingThatWasAcknowledged() throws { try run(.losses) }

  @Test func whatIsNotHereIsNotLost() throws { try run(.contentsOnDemand) }

  @Test func everyMachineShowsThePastAsItWas() throws { try run(.moments) }

  private func run(_ deeds: LibraryWorld.Deeds) throws {
    var outcomes: [Verdict.Outcome: Int] = [:]
    var (freed, restorations): (Int64, Int) = (0, 0)
    for seed in Self.seeds {
      let world = try LibraryWorld(seed: seed, deeds)
      do {
        try world.run()
      } catch {
        Issue.record("SHEAF_SEED=\(seed), \(deeds): \(error)\n\(world.log.joined(separator: "\n"))")
        if Self.environment["SHEAF_KEEP"] == nil { try? world.finish() }
        return
      }
      freed += world.freedDocuments
      restorations += world.restorations
      for verdict in world.machines.flatMap(\.outcomes) { outcomes[verdict.outcome, default: 0] += 1 }
      try world.finish()
    }
    print("\(deeds): outcomes \(outcomes), \(freed) documents freed, \(restorations) restorations")
    // Otherwise the histories prove nothing.
    if deeds == .contentsOnDemand, Self.seed == nil { #expect(freed > 20) }
    if deeds == .moments, Self.seed == nil { #expect(restorations > 20) }
  }
}

/// A hub and its libraries, and what was saved.
final class LibraryWorld {
  /// What happens in a history.
  enum Deeds {
    case everything
    /// Programs make, exchange and remove, and rarely do anything else.
    case exchanges
    /// Machines lose their power, and libraries are put back to backups.
    case losses
    /// Some machines keep no contents, or free them; the hub never goes back.
    case contentsOnDemand
    /// Now and then all machines have everything, and that moment is remembered. They and the hub have one clock.
    case moments
  }

  private let deeds: Deeds
  private var random: SeededRandom
  private var hub = SimulatedHub()
  private(set) var machines: [LibraryMachine] = []
  private var earlier: SimulatedHub?
  private var saved: Set<String> = []
  private var counter = 0
  private(set) var log: [String] = []
  private(set) var freedDocuments: Int64 = 0
  /// Those after which everything was as it had been.
  private(set) var restorations = 0
  /// What there was at some times.
  private var moments: [(time: Timestamp, present: [String: (item: WireID, what: String)])] = []

  /// What a machine lost after the hub had it: if the hub loses it, too, nobody has it.
  private var forgotten: Set<String> = []

  init(seed: UInt64, _ deeds: Deeds) throws {
    self.deeds = deeds
    random = SeededRandom(seed: seed)
    let clock = LibraryMachine.MachineClock()
    if deeds == .moments { hub.clock = clock }
    for index in 0..<Int.random(in: 2...3, using: &random) {
      machines.append(try LibraryMachine("machine\(index)", clock: hub.clock ?? LibraryMachine.MachineClock()))
    }
    if deeds == .losses { for machine in machines { try machine.copy(.disk) } }
    for machine in machines { machine.source = { [unowned self] in hub.text($0) } }
    if deeds == .contentsOnDemand {
      for machine in machines where Bool.random(using: &random) { try machine.limit() }
    }
  }

  func finish() throws { for machine in machines { try machine.finish() } }

  func run() throws {
    for _ in 0..<Int.random(in: 5...80, using: &random) {
      let machine = machines.randomElement(using: &random)!
      if deeds == .losses, Int.random(in: 0..<10, using: &random) == 0 {
        try lose(machine)
        continue
      }
      if deeds == .contentsOnDemand, Int.random(in: 0..<6, using: &random) == 0 {
        var waits = Bool.random(using: &random)
        if Bool.random(using: &random) {
          // What it has is at the hub by then.
          var steps = 0
          while try machine.step(&hub, losesAnswer: false), steps < 200 { steps += 1 }
          waits = true
        }
        let freed = try machine.free(waits: waits)
        log.append("\(machine.name) frees \(freed.documents)\(waits ? " after a day" : "")")
        freedDocuments += freed.documents
        continue
      }
      if deeds == .moments, Int.random(in: 0..<8, using: &random) == 0 {
        try remember()
        continue
      }
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9: try change(machine)
      case 9..<17:
        let limit = [1, 3, 1_000].randomElement(using: &random)!
        let isLost = Int.random(in: 0..<4, using: &random) == 0
        log.append("\(machine.name) step\(isLost ? ", answer lost" : "") limit \(limit)")
        _ = try machine.step(
          &hub, losesAnswer: isLost, doubles: Int.random(in: 0..<8, using: &random) == 0, limit: limit)
        log.append("  \(machine.stages.last ?? "")")
      case 17: machine.rest()
      case 18:
        log.append("\(machine.name) restart")
        try machine.restart()
      case _ where deeds == .contentsOnDemand || deeds == .moments: continue
      default:
        if let earlier, Int.random(in: 0..<4, using: &random) == 0 {
          log.append("the hub goes back")
          hub.restore(earlier)
          saved.subtract(forgotten)
          self.earlier = nil
        } else {
          earlier = hub
        }
      }
    }
    try settle()
    guard deeds == .moments, let moment = moments.randomElement(using: &random) else { return }
    let machine = machines.randomElement(using: &random)!
    try checkMoments()
    // One machine goes back, and on again, and all the others with it.
    let present = hub.present()
    if let before = try restore(moment.time, moment.present, on: machine) {
      _ = try restore(before, present, on: machine)
    }
  }

  /// Makes `Documents` what it was at a time.
  ///
  /// - Returns: the time that undoes it; nil where nothing was done, or where something was left alone, for which there
  ///   are reasons that this does not judge.
  private func restore(
    _ time: Timestamp, _ then: [String: (item: WireID, what: String)], on machine: LibraryMachine
  ) throws -> Timestamp? {
    let documents = try ItemPath(account: AccountHandle("alice@hub.example"), "Documents")
    log.append("\(machine.name) restores \(time)")
    let started = hub.clock?.now.nanoseconds ?? 0
    let done = try machine.library.restoreFolder(documents, FolderRestoreRequest(time: time)) { _ in }
    log += done.steps.map { "  \($0)" }
    try settle()
    if done.steps.contains(where: { $0.action == .leave }) { return nil }
    let present = hub.present()
    let differences = Set(present.keys).union(then.keys).sorted().filter { path in
      guard let (item, what) = present[path] else { return then[path] != nil }
      if then[path]?.what == what { return false }
      // What was saved before a deletion, and not sent, is sent once the document is there again: as its latest version,
      // merged with it, or beside it.
      let isLate = hub.versions(of: item).contains { $0.time < started && $0.arrived > started }
      // What one machine had, and no hub had heard of, may get another name for what comes back, and is known by that.
      guard let was = then[path] else { return !isLate && hub.placed(item) ?? .min < started }
      if was.item != item || isLate { return was.item != item }
      // Of a deleted document the hub may have a later version than this machine's trash, which comes back with it.
      let isRecovered = done.steps.contains { $0.action == .recover && $0.path == "Documents/\(path)" }
      return !isRecovered || hub.zone.items[item]?.version.flatMap(hub.zone.version)?.time ?? .max >= started
    }.map {
      "\($0): is \(present[$0].map { "\($0)" } ?? "-"), was \(then[$0].map { "\($0)" } ?? "-")"
    }
    guard differences.isEmpty else {
      throw LibraryMachine.Broken(
        description: "\(machine.name) restored \(time): \(differences.joined(separator: "; "))")
    }
    restorations += 1
    return done.before
  }

  /// Has all machines come to rest, and remembers what there is then.
  private func remember() throws {
    try settle()
    guard let clock = hub.clock else { return }
    clock.advance(seconds: 1)
    moments.append((clock.now, hub.present()))
    log.append("moment \(moments.count)")
    clock.advance(seconds: 1)
  }

  /// Each machine shows every moment as it was. One that is connected last does not know where things were that were
  /// moved since, and shows nothing that was not.
  private func checkMoments() throws {
    guard let clock = hub.clock else { return }
    let late = try LibraryMachine("late", clock: clock)
    late.source = machines[0].source
    machines.append(late)
    try settle()
    let present = hub.present()
    for (index, moment) in moments.enumerated() {
      /// What one machine had, and sent later.
      var early: [WireID: LibraryMachine] = [:]
      for machine in machines {
        let past = try machine.past(at: moment.time)
        let paths = Set(past.keys).union(moment.present.keys).sorted()
        let differences = paths.compactMap { path -> String? in
          let (shown, was) = (past[path], moment.present[path])
          // What never travelled, or was deleted here before its id became another item's, the hub does not know.
          let isKnown = shown.map { hub.zone.items[$0.item] != nil } ?? false
          if let shown, let was, shown.what == was.what, shown.item == was.item || !isKnown { return nil }
          if was == nil, !isKnown || shown == nil { return nil }
          if was == nil, let item = shown?.item, early[item, default: machine] === machine,
            hub.placed(item) ?? .min > moment.time.nanoseconds
          {
            early[item] = machine
            return nil
          }
          if shown == nil, machine === late, let item = was?.item {
            let stays = !path.contains("/") && present[path]?.item == item
            if !stays || hub.placed(item) ?? .min > moment.time.nanoseconds { return nil }
          }
          return "\(path): shown \(shown.map { "\($0)" } ?? "-"), was \(was.map { "\($0)" } ?? "-")"
        }
        guard differences.isEmpty else {
          throw LibraryMachine.Broken(
            description: "\(machine.name), moment \(index + 1): \(differences.joined(separator: "; "))")
        }
      }
    }
  }

  /// A machine is synced, backed up, loses its power, or gets its backup back.
  private func lose(_ machine: LibraryMachine) throws {
    let copy: LibraryMachine.Copy
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      log.append("\(machine.name) syncs")
      return try machine.copy(.disk)
    case 1:
      log.append("\(machine.name) is backed up")
      return try machine.copy(.backup)
    case 2..<4: copy = .disk
    default: copy = .backup
    }
    let withSerials = copy == .backup && Bool.random(using: &random)
    guard let lost = try machine.putBack(copy, withSerials: withSerials) else { return }
    log.append(
      "\(machine.name) \(copy == .disk ? "loses its power" : "is put back\(withSerials ? " as a whole" : "")")")
    let atHub = hub.texts
    saved.subtract(lost.subtracting(atHub))
    forgotten.formUnion(lost.intersection(atHub))
  }

  private func settle() throws {
    log.append("settle")
    var rounds = 0
    while true {
      var isBusy = false
      for machine in machines {
        machine.rest()
        var steps = 0
        while try machine.step(&hub, losesAnswer: false) {
          isBusy = true
          log.append("\(machine.name): \(machine.stages.last ?? "")")
          steps += 1
          guard steps < 1_000 else {
            throw LibraryMachine.Broken(
              description: "\(machine.name) comes to no rest:\n\(machine.stages.suffix(12).joined(separator: "\n"))")
          }
        }
      }
      if !isBusy { break }
      rounds += 1
      guard rounds < 50 else { throw LibraryMachine.Broken(description: "the machines come to no rest") }
    }
    try hub.zone.check()
    let expected = hub.shown()
    for machine in machines {
      let shown = try machine.shown()
      let paths = Set(shown.keys).union(expected.keys).filter { shown[$0] != expected[$0] }.sorted()
      let differences = paths.map { "\($0): here \(shown[$0] ?? "-"), hub \(expected[$0] ?? "-")" }
      guard paths.isEmpty else {
        throw LibraryMachine.Broken(description: "\(machine.name) differs: \(differences.joined(separator: "; "))")
      }
    }
    try checkHistories()
    try checkLogs()
    var found = hub.texts
    for machine in machines { found.formUnion(try machine.texts()) }
    let lost = saved.subtracting(found)
    if !lost.isEmpty {
      throw LibraryMachine.Broken(description: "lost: \(lost.sorted().joined(separator: " | "))")
    }
  }

  /// All machines have the hub's log, whatever it went through; and a reader was told of each event at most once, and of
  /// each deed once, unless a library was put back.
  private func checkLogs() throws {
    for machine in machines {
      let (log, waiting) = try machine.log()
      let shown = log.map { event in
        var event = event
        event.position = event.sequence
        return event
      }
      guard shown == hub.zone.events else {
        let parts = zip(shown, hub.zone.events).first { $0 != $1 }.map { "\($0)" } ?? "\(shown.count)"
        throw LibraryMachine.Broken(
          description: "\(machine.name) has another log, of \(hub.zone.events.count): \(parts)")
      }
      guard waiting.isEmpty else {
        throw LibraryMachine.Broken(description: "\(machine.name) waits to tell: \(waiting)")
      }
      if deeds == .losses { continue }
      let ids = machine.told.map(\.id)
      guard Set(ids).count == ids.count else {
        throw LibraryMachine.Broken(description: "\(machine.name) told of an event twice")
      }
      if hub.epoch == 0, machine.told.map(\.id) != hub.zone.events.map(\.id) {
        throw LibraryMachine.Broken(
          description: "\(machine.name) told \(machine.told.count) of \(hub.zone.events.count) events: "
            + hub.zone.events.filter { !ids.contains($0.id) }.map { "\($0)" }.joined(separator: "\n"))
      }
    }
  }

  /// Every machine has all versions of all documents, also of those that were deleted. In the trash they may have other
  /// numbers than at the hub.
  private func checkHistories() throws {
    for row in hub.zone.items.values where row.kind == .document && row.version != nil {
      let expected = hub.versions(of: row.item)
      for machine in machines {
        let history = try machine.history(of: row.item)
        for version in expected {
          let (text, here) = (hub.text(version.id), history[version.id])
          guard let here, here.number == version.number || row.isDeleted, here.text == text else {
            throw LibraryMachine.Broken(
              description: "\(machine.name), \(row.item)\(row.isDeleted ? ", deleted" : ""): version \(version.number) "
                + "\(version.id) is \(history[version.id].map { "\($0)" } ?? "missing"), of "
                + "\(history.values.map(\.number).sorted()) and \(expected.map(\.number))")
          }
        }
      }
    }
  }

  // MARK: - What people do

  private struct Entry {
    let path: String
    let parent: Int64
    let name: [UInt8]
    let attributes: Attributes
    var isFolder: Bool { attributes.mode & S_IFMT == S_IFDIR }
    var isRegular: Bool { attributes.mode & S_IFMT == S_IFREG }
  }

  private func entries(_ machine: LibraryMachine) throws -> [Entry] {
    var entries: [Entry] = []
    var open: [(path: String, ino: Int64)] = [("", try machine.documents)]
    while let folder = open.popLast() {
      for entry in try machine.library.list(folder.ino, after: 0, limit: 10_000, machine.other) {
        let path = folder.path + String(decoding: entry.name, as: UTF8.self)
        entries.append(
          Entry(path: path, parent: folder.ino, name: entry.name, attributes: try #require(entry.attributes)))
        if entries[entries.count - 1].isFolder { open.append((path + "/", entry.ino)) }
      }
    }
    return entries.sorted { $0.path < $1.path }
  }

  private func text(after former: String?) -> String {
    counter += 1
    if Int.random(in: 0..<8, using: &random) == 0 { return ["same\n", "other\n"].randomElement(using: &random)! }
    var lines = (former ?? "one\ntwo\nthree\nfour\nfive\nsix\nseven\n").split(
      separator: "\n", omittingEmptySubsequences: false)
    let line = Substring("line \(counter)")
    let place = Int.random(in: 0...lines.count, using: &random)
    if place < lines.count, Bool.random(using: &random) {
      lines[place] = line
    } else {
      lines.insert(line, at: place)
    }
    return lines.joined(separator: "\n")
  }

  private func change(_ machine: LibraryMachine) throws {
    let library = machine.library
    let entries = try entries(machine)
    let folders = try [machine.documents] + entries.filter(\.isFolder).map(\.attributes.ino)
    let folder = folders.randomElement(using: &random)!
    let name = ["a", "b", "c.md", "d"].randomElement(using: &random)!
    let program = Bool.random(using: &random) ? machine.program : machine.other
    let entry = Int.random(in: 0..<5, using: &random) == 0 ? nil : entries.randomElement(using: &random)
    do {
      guard let entry else {
        let kind = Int.random(in: 0..<4, using: &random)
        log.append(
          "\(machine.name) makes \(["a document", "a document", "a folder", "a link"][kind]) \(name) in \(folder)")
        switch kind {
        case 2: _ = try library.make(.folder, folder, Array(name.utf8), mode: 0o755, program)
        case 3:
          _ = try library.make(
            .symbolicLink(target: Array("there".utf8)), folder, Array(name.utf8), mode: 0o777, program)
        default:
          guard (try? library.lookup(folder, Array(name.utf8), program)) == nil else { return }
          try save(text(after: nil), machine, folder, name, program)
        }
        return
      }
      log.append("\(machine.name) \(entry.path) …")
      let what: String
      let deed =
        deeds == .exchanges && Int.random(in: 0..<8, using: &random) > 0
        ? [7, 7, 8].randomElement(using: &random)! : Int.random(in: 0..<14, using: &random)
      switch deed {
      case 0..<4 where entry.isRegular:
        what = "saves in place"
        try save(
          text(after: machine.text(entry.attributes.ino)), machine, entry.parent,
          String(decoding: entry.name, as: UTF8.self), program)
      case 4 where entry.isRegular:
        what = "saves by rename"
        let text = text(after: try machine.text(entry.attributes.ino))
        try save(text, machine, entry.parent, ".new.tmp", machine.program)
        _ = try library.rename(
          entry.parent, Array(".new.tmp".utf8), to: entry.parent, entry.name, .replace, machine.program)
      case 5..<7:
        what = "moves to \(name) in \(folder)"
        _ = try machine.whenHere {
          try library.rename(entry.parent, entry.name, to: folder, Array(name.utf8), .noReplace, program)
        }
      case 7:
        let other = entries.randomElement(using: &random)!
        what = "exchanges with \(other.path)"
        _ = try machine.whenHere {
          try library.rename(entry.parent, entry.name, to: other.parent, other.name, .exchange, program)
        }
      case 8..<10:
        what = "removes"
        try remove(entry, entries, machine, program)
      case 10:
        what = "changes the mode"
        if entry.isRegular || entry.isFolder {
          let mode = UInt32.random(in: 0o600...0o777, using: &random)
          _ = try library.setAttributes(entry.attributes.ino, .init(mode: mode), handle: nil, program)
        }
      case 11 where !entry.isFolder:
        what = "sets the time"
        counter += 1
        _ = try library.setAttributes(
          entry.attributes.ino, .init(mtime: .at(Timestamp(nanoseconds: Int64(counter)))), handle: nil, program)
      case 12:
        what = "sets an attribute"
        let value = [UInt8](repeating: 1, count: Int.random(in: 0..<3, using: &random))
        if entry.isRegular || entry.isFolder {
          try library.setXattr(entry.attributes.ino, Array("user.a".utf8), value, .set, program)
        }
      case 13 where entry.isRegular:
        what = "moves over another one"
        guard let other = entries.filter(\.isRegular).randomElement(using: &random) else { return }
        _ = try machine.whenHere {
          try library.rename(entry.parent, entry.name, to: other.parent, other.name, .replace, program)
        }
      default:
        what = "links to \(name) in \(folder)"
        if !entry.isFolder { _ = try library.link(entry.attributes.ino, folder, Array(name.utf8), program) }
      }
      log[log.count - 1] += what
    } catch let error as SheafError where [.exists, .invalid, .notEmpty, .notFound, .notDirectory].contains(error.kind)
    {
      log[log.count - 1] += "refused: \(error.kind)"
    }
  }

  private func save(
    _ text: String, _ machine: LibraryMachine, _ folder: Int64, _ name: String, _ caller: Caller
  ) throws {
    try machine.save(text, folder, name, caller)
    saved.insert(text)
  }

  private func remove(
    _ entry: Entry, _ entries: [Entry], _ machine: LibraryMachine, _ caller: Caller
  ) throws {
    for each in entries.reversed() where each.path.hasPrefix(entry.path + "/") || each.path == entry.path {
      if each.isFolder {
        _ = try machine.library.rmdir(each.parent, each.name, caller)
      } else {
        try machine.library.unlink(each.parent, each.name, caller)
      }
    }
  }
}

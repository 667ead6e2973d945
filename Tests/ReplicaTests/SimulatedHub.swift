import Foundation
import HubKit
import SheafHub
import SheafModel
import SheafReplica
import SheafWire

/// A hub in memory, by the hub's own rules, that repeats its verdicts and can be put back to an earlier state.
struct SimulatedHub {
  private(set) var zone = MemoryZone()
  private var verdicts: [String: [Int64: (asked: SendDigest, verdict: Verdict)]] = [:]
  /// Rises with each restored state.
  private(set) var epoch = 0
  private var seconds = 1_800_000_000
  /// The clock that it goes by; nil for one of its own.
  var clock: LibraryMachine.MachineClock?
  /// Up to which number the log of now has the events of each epoch before.
  private var partings: [Int: Int64] = [:]
  /// What it refuses besides what its rules say, as it does where an account's rights are lost.
  var refusal: (Send) -> Verdict.Reason? = { _ in nil }

  /// Does the groups of a request once, however often it comes.
  mutating func send(_ groups: [[Send]], from device: String) throws -> [Verdict] {
    var answers: [Verdict] = []
    seconds += 1
    for group in groups {
      let known = group.compactMap { verdicts[device]?[$0.serial] }
      if !known.isEmpty {
        let isSame = try known.map(\.asked) == group.map(SendDigest.init)
        answers +=
          isSame
          ? known.map(\.verdict)
          : group.map { Verdict(serial: $0.serial, outcome: .refused, reason: .confirmed, item: $0.item) }
        continue
      }
      let made =
        try refused(group)
        ?? zone.send(group, by: MemoryZone.author(device, at: clock?.now ?? Timestamp(seconds: Int64(seconds))))
      for (send, verdict) in zip(group, made) {
        verdicts[device, default: [:]][verdict.serial] = (try SendDigest(send), verdict)
      }
      answers += made
    }
    return answers
  }

  /// The verdicts on a group of which something is refused; nil if nothing is.
  private func refused(_ group: [Send]) -> [Verdict]? {
    let reasons = group.map(refusal)
    if reasons.allSatisfy({ $0 == nil }) { return nil }
    return zip(group, reasons).map {
      Verdict(serial: $0.serial, outcome: .refused, reason: $1 ?? .group, item: $0.item)
    }
  }

  /// The newest states of items that changed after a number, the oldest change first.
  func page(after number: Int64, limit: Int) -> (items: [ItemState], hasMore: Bool) {
    let rows = zone.items.values.filter { $0.number > number }.sorted { $0.number < $1.number }
    return (rows.prefix(limit).compactMap { zone.state($0.item) }, rows.count > limit)
  }

  /// The versions of an item that come after a number, the oldest first.
  func versions(of item: WireID, after number: Int64 = 0) -> [ItemVersion] {
    zone.versions.values.filter { $0.item == item && $0.number > number }.sorted { $0.number < $1.number }.map(\.facts)
  }

  func text(_ version: WireID) -> String? { zone.text(of: version).map { String(decoding: $0, as: UTF8.self) } }

  /// Whether it gives out the contents of an item.
  func gives(_ item: WireID) -> Bool { zone.state(item).map { !$0.isDeleted } ?? false }

  /// Takes the place of a hub that was lost.
  mutating func restore(_ earlier: SimulatedHub) {
    let (epoch, seconds, last) = (epoch, seconds, Int64(earlier.zone.events.count))
    var partings = partings.mapValues { min($0, last) }
    partings[epoch] = min(Int64(zone.events.count), last)
    self = earlier
    self.epoch = epoch + 1
    self.seconds = seconds
    self.partings = partings
  }

  /// Events after a place that was read in an epoch, and whether the logs of then and now part there.
  func log(after number: Int64, of former: Int?, limit: Int) -> (page: LogPage<Event>, isAnew: Bool) {
    let isAnew = former.map { $0 != epoch } ?? false
    let start = isAnew ? min(number, former.flatMap { partings[$0] } ?? 0) : number
    let events = Array(zone.events.dropFirst(Int(start)).prefix(limit))
    let next = events.last?.sequence ?? start
    return (LogPage(events: events, next: next, last: Int64(zone.events.count), token: "\(epoch)"), isAnew)
  }

  /// What is there, by path, as ``SimulatedTree/shown()`` has it.
  func shown() -> [String: String] {
    var tree = SimulatedTree()
    for id in zone.items.keys {
      guard let state = zone.state(id), !state.isDeleted else { continue }
      tree.put(
        LocalItem(
          item: id, kind: state.kind, places: Set(state.places), mode: state.mode, mtime: state.mtime,
          target: state.target, attributes: state.attributes))
    }
    var shown = tree.shown()
    for (path, id) in zone.paths {
      if let version = zone.items[id]?.version { shown[path, default: ""] += "\(version) \(text(version) ?? "?")" }
    }
    return shown
  }

  /// What is there, by path, as ``LibraryMachine/past(at:)`` has it.
  func present() -> [String: (item: WireID, what: String)] {
    var present: [String: (item: WireID, what: String)] = [:]
    for (path, id) in zone.paths {
      guard let row = zone.items[id] else { continue }
      let contents = row.target.map { String(decoding: $0, as: UTF8.self) } ?? row.version.flatMap(text) ?? ""
      present[path] = (id, "\(row.kind) \(contents)")
    }
    return present
  }

  /// When an item got its names, in nanoseconds; nil where it was made with them.
  func placed(_ item: WireID) -> Int64? { zone.state(item)?.placed }

  /// The contents of all versions.
  var texts: Set<String> { Set(zone.versions.keys.compactMap { text($0) }) }
}

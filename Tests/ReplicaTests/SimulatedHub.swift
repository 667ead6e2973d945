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
        try refused(group) ?? zone.send(group, by: MemoryZone.author(device, at: Timestamp(seconds: Int64(seconds))))
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

  /// Takes the place of a hub that was lost.
  mutating func restore(_ earlier: SimulatedHub) {
    let (epoch, seconds) = (epoch, seconds)
    self = earlier
    self.epoch = epoch + 1
    self.seconds = seconds
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

  /// The contents of all versions.
  var texts: Set<String> { Set(zone.versions.keys.compactMap { text($0) }) }
}

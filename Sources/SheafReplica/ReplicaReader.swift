package import SheafWire

/// What a replica notes of an item besides the three trees.
package enum ReplicaMark: Hashable, Sendable, Codable {
  /// The hub refused what was wanted: its state is shown, whatever was changed here.
  case undone
  /// The hub refused to make it. It stays on this machine, and is sent again when it changes.
  case refused(Verdict.Reason)
  /// The hub refused it as part of a group: it is sent alone, since its id may be another one's by now.
  case alone
  /// Its versions have new ids, since the hub refused the former ones. It is sent alone.
  case renewed
  /// The folder holds more than one send may delete: what is in it is deleted first.
  case deletedInParts
  /// It was deleted at the hub and changed here, so all of it is sent; or what was done here keeps it from going, or from
  /// going where the hub has it. Its names are older than that deed of others.
  case returning
}

/// How an item is in a share: with which item that is shared, and since when.
package struct ShareEntry: Hashable, Sendable {
  /// The shared item.
  package let item: WireID
  /// By the clock of this machine, in nanoseconds since 1970. Of what was saved until then, people in the share see the
  /// last version alone.
  package let time: Int64

  package init(item: WireID, time: Int64) { (self.item, self.time) = (item, time) }
}

/// The three trees of a replica, as a plan finds them: what is on this machine (*local*), what the hub had when it and
/// this machine last agreed (*base*), and what the hub told since (*news*).
package protocol ReplicaReader {
  /// An item on this machine.
  mutating func local(_ id: WireID) throws -> LocalItem?
  /// The hub's state of an item as the replica last knew it; nil where the hub has none, or has deleted it.
  mutating func base(_ id: WireID) throws -> ItemState?
  /// A newer state that the hub told, and that is not shown yet.
  mutating func news(_ id: WireID) throws -> ItemState?
  mutating func mark(_ id: WireID) throws -> ReplicaMark?
  /// Where an item of this machine is in a share of its account; nil where it is in none, and in others' shares.
  mutating func entry(_ id: WireID) throws -> ShareEntry?
  /// Whether the account shares an item, on its own and not as a part of another one.
  mutating func isShared(_ id: WireID) throws -> Bool
  /// The item that has a name on this machine.
  mutating func localOccupant(of place: Place) throws -> WireID?
  /// The item that has a name in the base.
  mutating func baseOccupant(of place: Place) throws -> WireID?
  /// The items in a folder of this machine.
  mutating func localChildren(of folder: WireID) throws -> [WireID]
  /// The items in a folder of the base.
  mutating func baseChildren(of folder: WireID) throws -> [WireID]
  /// Whether an item that is missing here has been so for long enough that no program is about to bring it back.
  mutating func isGone(_ id: WireID) throws -> Bool
  /// The id of the item that another one became; nil where it did not.
  mutating func alias(_ id: WireID) throws -> WireID?
  /// An id that no item has.
  mutating func newID() -> WireID
}

/// A change of what the replica remembers.
package enum RecordChange: Hashable, Sendable {
  case base(WireID, ItemState?)
  case news(WireID, ItemState?)
  case mark(WireID, ReplicaMark?)
  /// The first item became the second one; nil where it is itself again.
  case alias(WireID, WireID?)
}

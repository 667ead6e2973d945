package import Foundation
package import SheafWire

/// A version of a document that the hub has not acknowledged.
package struct LocalVersion: Hashable, Sendable, Codable {
  package let id: WireID
  /// The version that its author saw; nil for a first one.
  package var base: WireID?
  package let cause: VersionCause
  /// The author's clock, in nanoseconds since 1970.
  package let time: Int64

  package init(id: WireID, base: WireID?, cause: VersionCause, time: Int64) {
    self.id = id
    self.base = base
    self.cause = cause
    self.time = time
  }
}

/// An item as this machine has it.
package struct LocalItem: Hashable, Sendable, Codable {
  /// Whether the hub may hear of it.
  package enum Readiness: Hashable, Sendable, Codable {
    case ready
    /// Not yet: a program still writes it, or its name may not last.
    case waiting
    /// Never: it is a temporary or an ignored file.
    case never
  }

  package let item: WireID
  package let kind: ItemKind
  /// All its names.
  package var places: Set<Place>
  /// Permission bits.
  package var mode: Int
  /// In nanoseconds since 1970. That of a folder does not travel: it changes with every name in the folder.
  package var mtime: Int64
  /// Where a symlink leads.
  package var target: Data?
  package var attributes: [String: Data]
  /// The current version of a document; nil before any.
  package var version: WireID?
  /// Whether something of the current version's contents is not on this machine. It is told of documents that the hub may
  /// have destroyed alone, and no part of a stored step.
  package var isLacking = false
  /// What the hub has not acknowledged, the oldest first. Versions of sessions that go on are not among them.
  package var unsent: [LocalVersion]
  /// Bytes of the contents of these together. It is told of documents that the hub does not have, and no part of a
  /// stored step.
  package var unsentBytes: Int64 = 0
  package var readiness: Readiness

  private enum CodingKeys: CodingKey {
    case item, kind, places, mode, mtime, target, attributes, version, unsent, readiness
  }

  package init(
    item: WireID, kind: ItemKind, places: Set<Place>, mode: Int, mtime: Int64, target: Data? = nil,
    attributes: [String: Data] = [:], version: WireID? = nil, unsent: [LocalVersion] = [],
    readiness: Readiness = .ready
  ) {
    self.item = item
    self.kind = kind
    self.places = places
    self.mode = mode
    self.mtime = mtime
    self.target = target
    self.attributes = attributes
    self.version = version
    self.unsent = unsent
    self.readiness = readiness
  }

  /// Whether a document of which the hub has nothing is whole here, so that it can be sent as a new one.
  var isBroughtBack: Bool { version != nil && !isLacking }

  /// The item as the hub has it.
  package init(_ state: ItemState) {
    self.init(
      item: state.item, kind: state.kind, places: Set(state.places), mode: state.mode, mtime: state.mtime,
      target: state.target, attributes: state.attributes, version: state.version?.id)
  }
}

/// A change of this machine's tree that the hub's word asks for.
///
/// Those of one plan are carried out together. Names are checked when all are done, so that two items can swap theirs. An
/// item with an id that is among the deleted of this machine comes back, with its history.
package enum LocalChange: Hashable, Sendable, Codable {
  /// The item is to be so, and is made where it is missing. Its contents are those of its version, which is given
  /// where it may be missing here.
  case put(LocalItem, ItemVersion?)
  /// The item goes; a folder is empty by then. What it had stays among the deleted.
  case delete(WireID, told: Deletion? = nil)
  /// The item goes with all that it had, for good.
  case destroy(WireID)
  /// The versions of a document that the hub had go for good, and those that it never had stay.
  case destroySent(WireID)
  /// The item has another id from now on, and some of its versions have. It may be the same id.
  case identify(WireID, as: WireID, versions: [WireID: WireID])
  /// The current version of a document is one that the hub does not have.
  case renew(WireID)
  /// The unsent versions of the first item are the second one's, and the first one goes. A folder is empty by then.
  case absorb(WireID, into: WireID)
  /// A version is another document's, which is made where it is missing and where it is current.
  case moveVersion(WireID, from: WireID, to: LocalItem)
}

/// A deletion as a hub tells of it.
package struct Deletion: Hashable, Sendable, Codable {
  /// By the hub's clock, in nanoseconds since 1970.
  package let time: Int64
  /// The handle of who deleted it; nil for the owner of the zone.
  package let person: String?

  /// - Returns: nil where the hub does not say when it was.
  init?(_ state: ItemState) {
    guard let time = state.deleted else { return nil }
    (self.time, person) = (time, state.placedBy)
  }
}

/// What a person should hear, since it is not as they wanted it.
package struct ReplicaNotice: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// What was saved here went beside what another device had saved.
    case beside(document: WireID)
    /// Another item has the name; it has a new one.
    case renamed
    /// It was deleted here, and changed elsewhere: it is back.
    case kept
    /// It was saved here while somebody destroyed it elsewhere: it is a new item.
    case purgedElsewhere
    /// The hub does not take the change.
    case refused(Verdict.Reason)
  }

  package let item: WireID
  package let kind: Kind
}

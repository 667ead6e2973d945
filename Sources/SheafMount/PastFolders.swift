import Glibc
import Fuse
import SheafLibrary
import SheafModel
import Synchronization

/// The folders as they were that a mount's kernel knows, counted as FUSE counts look-ups.
///
/// A folder is a node of its own below each node that leads to it, since the kernel takes two names of one folder for a
/// folder that moved. A folder and a moment do not fit into the number of a node. So they are numbered here, for as
/// long as the kernel knows them.
final class PastFolders: Sendable {
  struct Place: Hashable {
    /// `.versions`, or the folder around this one as it was.
    let parent: NodeID
    let ino: Int64
    /// The folder in whose `.versions` it is.
    let top: Int64
    let time: Timestamp
  }

  private struct State {
    var next: Int64 = 1
    var places: [Int64: (place: Place, lookups: UInt64)] = [:]
    var numbers: [Place: Int64] = [:]
  }

  private let state = Mutex(State())

  /// The node of a place, which the kernel is given now.
  func give(_ place: Place) -> Node {
    state.withLock { state in
      let number = state.numbers[place] ?? state.next
      if number == state.next {
        state.next += 1
        state.numbers[place] = number
      }
      state.places[number, default: (place, 0)].lookups += 1
      return .pastFolder(number)
    }
  }

  /// The place that a number means.
  ///
  /// - Throws: ESTALE for one that the kernel forgot.
  subscript(number: Int64) -> Place {
    get throws(Errno) {
      guard let place = state.withLock({ $0.places[number]?.place }) else { throw .staleFileHandle }
      return place
    }
  }

  func forget(_ nodes: [Forgotten]) {
    state.withLock { state in
      if state.places.isEmpty { return }
      for forgotten in nodes {
        guard case .pastFolder(let number) = Node(forgotten.node), let known = state.places[number] else { continue }
        if known.lookups > forgotten.count {
          state.places[number]?.lookups -= forgotten.count
        } else {
          state.places[number] = nil
          state.numbers[known.place] = nil
        }
      }
    }
  }
}

/// Folders as they were, in a mount.
extension AccountFileSystem {
  /// A folder as it was, below `.versions` or in another one.
  func pastFolder(
    _ ino: Int64, below top: Int64, at time: Timestamp, in parent: NodeID, _ caller: RequestContext
  ) throws(Errno) -> Entry {
    let attributes = try translated { try library.pastFolder(ino, at: time, credentials(caller)) }
    let node = pastFolders.give(.init(parent: parent, ino: ino, top: top, time: time)).id
    return Entry(node: node, attributes: FileAttributes(attributes, of: node))
  }

  /// Looks up a name in a folder as it was.
  func lookupPast(_ name: FileName, in parent: NodeID, _ number: Int64, _ caller: RequestContext) throws(Errno) -> Entry
  {
    try permit(parent, .execute, caller)
    let place = try pastFolders[number]
    let found = try translated {
      try library.pastEntry(place.ino, name.bytes, below: place.top, at: place.time, credentials(caller))
    }
    if case .folder(let ino) = found.kind {
      return try pastFolder(ino, below: place.top, at: place.time, in: parent, caller)
    }
    let entry = try translated { try pastEntry(found, credentials(caller)) }
    if found.isForeign { foreignNodes.note(entry.node) }
    return entry
  }

  /// The entries of a folder as it was. They have no nodes: the kernel looks up items in the folder by name.
  func pastListing(_ number: Int64, _ caller: RequestContext) throws -> Listings.Listing {
    let place = try pastFolders[number]
    return .init(
      try library.pastEntries(of: place.ino, below: place.top, at: place.time, credentials(caller)).map { found in
        let (node, type): (Node, UInt32) =
          switch found.kind {
          case .folder(let ino): (.inode(ino), S_IFDIR)
          case .symbolicLink(let ino): (.pastLink(ino: ino), S_IFLNK)
          case .document(let item, let version): (.versionFile(item: item, number: version), S_IFREG)
          }
        return (FileName(found.name), Entry(node: .none, attributes: FileAttributes(node: node.id, mode: type)))
      })
  }

  /// A document or symbolic link that was in a folder.
  private func pastEntry(_ found: Library.PastEntry, _ caller: Caller) throws -> Entry {
    switch found.kind {
    case .document(let item, let number):
      let file = try library.versionFile(of: item, number: number, caller)
      let owner = try library.versionOwner(of: item, caller)
      return Entry(
        node: Node.versionFile(item: item, number: number).id, attributes: self.file(file, owner: owner),
        attributeTimeout: file.isOpen ? 0 : Self.forever)
    case .symbolicLink(let ino), .folder(let ino):
      let node = Node.pastLink(ino: ino)
      return Entry(node: node.id, attributes: try attributes(node, caller).0)
    }
  }
}

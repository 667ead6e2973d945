import Glibc
package import SheafModel
import SheafStore

/// The space that documents take in the library's file, by folder.
///
/// Rules:
/// 1. Bytes are those that chunks take as they are stored, compressed or packed. Each chunk counts once, as du(1) counts
///    a file with several names: for present contents if any refer to it, else for history, else for the trash, and for
///    the folder that comes to it first.
/// 2. Everything is read from a snapshot, without the lock.
/// 3. The numbers include items that participants may not see. So only the owner gets them.
///
/// Rooms: `Numbers`.
extension Library {
  /// The space that an item takes, and for a folder the space of each folder in it, the largest first.
  ///
  /// - Parameter path: `Documents` where nil.
  /// - Throws: `notFound`, and `accessDenied` for what another account owns.
  package func usage(
    _ handle: AccountHandle, of path: ItemPath?, progress: (SheafModel.Progress) -> Void
  ) throws -> UsageReport {
    completeSaves()
    let path = try path ?? ItemPath(account: handle, "Documents")
    let (top, id, place, last) = try locked {
      let inode = try resolve(path)
      guard try inode.row.owner == account(path.account).id else {
        throw SheafError(
          .accessDenied, subject: "\(path)", reason: "takes room in its owner's account, who alone sees how much",
          advice: "name something of your own Documents")
      }
      return (inode.ino, try item(of: inode)?.uuid.text, "\(path)", numbers.chunk)
    }
    return try store.snapshot { transaction in
      var count = UsageCount(upTo: last)
      try count.add(top, transaction, progress)
      let folders = try count.folders.map { ino, usage in
        let inode = try transaction.inode(ino)
        let item = try inode?.item.flatMap { try transaction.item($0) }
        return FolderUsage(
          id: item?.uuid.text, path: "\(place)/\(String(decoding: inode?.name ?? [], as: UTF8.self))", usage)
      }
      return UsageReport(
        id: id, path: place, count.total, folders: folders.sorted { ($1.total, $0.path) < ($0.total, $1.path) })
    }
  }
}

/// Counts what a tree takes.
private struct UsageCount {
  private static let batch = 512
  /// Packs whose sizes are remembered.
  private static let packLimit = 16_384

  private enum Part: CaseIterable {
    case contents, history, trash
  }

  private(set) var total = Usage()
  /// The folders in the top one.
  private(set) var folders: [Int64: Usage] = [:]
  private var counted: ChunkMarks
  private var packs: [Int64: Int64] = [:]
  private var looked: Int64 = 0

  init(upTo chunk: Int64) { counted = ChunkMarks(limit: chunk) }

  /// Goes through the tree once for each part, so that a chunk counts for the first that refers to it.
  mutating func add(
    _ top: Int64, _ transaction: StoreTransaction, _ progress: (SheafModel.Progress) -> Void
  ) throws {
    for part in Part.allCases {
      // The inodes that are still to be counted, each with the folder directly in `top` that it lies in.
      var (open, passed) = ([(ino: top, folder: Int64?.none)], Set<Int64>())
      while let place = open.popLast() {
        guard let inode = try transaction.inode(place.ino) else { continue }
        guard inode.mode & S_IFMT == S_IFDIR else {
          try add(inode, part, for: place.folder, transaction)
          continue
        }
        guard passed.insert(inode.ino).inserted else { continue }
        var cookie: Int64? = 0
        while let start = cookie {
          let entries = try transaction.entries(inode.ino, after: start, limit: Self.batch)
          for entry in entries {
            guard let child = try transaction.inode(entry.ino) else { continue }
            if child.mode & S_IFMT == S_IFDIR {
              let folder = place.ino == top ? child.ino : place.folder
              if let folder { folders[folder, default: Usage()].add(Usage()) }
              open.append((child.ino, folder))
            } else {
              try add(child, part, for: place.folder, transaction)
            }
          }
          looked += Int64(entries.count)
          progress(SheafModel.Progress(done: looked, total: 0))
          cookie = entries.last?.hash
        }
        if part == .trash { open += try transaction.deleted(from: inode.ino).map { ($0.ino, place.folder) } }
      }
    }
  }

  /// Counts what of a file belongs to a part.
  private mutating func add(
    _ inode: InodeRow, _ part: Part, for folder: Int64?, _ transaction: StoreTransaction
  ) throws {
    guard (inode.nlink == 0) == (part == .trash) else { return }
    var bytes: Int64 = 0
    if part != .history, let content = inode.content { bytes += try take(content, transaction) }
    if part != .contents, let item = inode.item {
      var below: Int64? = .max
      while let end = below {
        let versions = try transaction.versions(item, below: end, limit: Self.batch)
        for version in versions { bytes += try take(version.content, transaction) }
        below = versions.count < Self.batch ? nil : versions.last?.number
      }
    }
    let usage =
      switch part {
      case .contents: Usage(contents: bytes)
      case .history: Usage(history: bytes)
      case .trash: Usage(trash: bytes)
      }
    total.add(usage)
    if let folder { folders[folder, default: Usage()].add(usage) }
  }

  /// Bytes of those chunks of some contents that did not count yet.
  private mutating func take(_ content: StoredContent, _ transaction: StoreTransaction) throws -> Int64 {
    var bytes: Int64 = 0
    switch content {
    case .extents(let extents): for extent in extents { bytes += try take(extent.chunk, transaction) }
    case .nodes(let nodes):
      for node in nodes where counted.expand(node.chunk) {
        bytes += try take(node.chunk, transaction)
        for extent in try StoredContent.decodeNode(transaction.chunkBytes(node.chunk)) {
          bytes += try take(extent.chunk, transaction)
        }
      }
    }
    return bytes
  }

  private mutating func take(_ chunk: Int64, _ transaction: StoreTransaction) throws -> Int64 {
    guard counted.isDead(chunk) else { return 0 }
    counted.insert(chunk)
    switch try transaction.chunkSpace(chunk) {
    case .bytes(let bytes): return bytes
    case .pack(let pack):
      if let known = packs[pack] { return known }
      let share = try transaction.packShare(pack)
      if packs.count >= Self.packLimit { packs = [:] }
      packs[pack] = share
      return share
    case nil: return 0
    }
  }
}

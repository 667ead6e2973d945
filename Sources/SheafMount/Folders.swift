import Glibc
import Fuse
import SheafLibrary
import SheafModel

/// Listing folders.
extension AccountFileSystem {
  /// Entries to ask for at a time: about as many as a buffer of readdirplus holds.
  private static let batch = 64

  func opendir(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    _ = reply.answer { () throws(Errno) in
      try permit(node, .read, caller)
      guard let listing = try listing(of: Node(node), caller) else {
        return OpenResult(
          handle: accessTimes.folderHandle(flags), keepCache: keepsListings, cacheDirectory: keepsListings)
      }
      return OpenResult(handle: listings.add(listing))
    }
  }

  /// The present entries of a folder that Sheaf makes up; nil for a folder of the library, which is listed as it is
  /// read.
  private func listing(of node: Node, _ caller: RequestContext) throws(Errno) -> Listings.Listing? {
    try translated {
      switch node {
      case .inode: return nil
      case .root:
        let documents = shownEntry(try library.attributes(self.documents, credentials(caller)))
        let shared = Entry(
          node: Node.shared.id, attributes: folder(.shared), entryTimeout: Self.forever, attributeTimeout: Self.forever)
        return .init([(FileName(Self.documentsName), documents), (FileName(Self.sharedName), shared)])
      case .shared:
        return .init(
          library.sharedOwners(account).map { owner in
            (FileName(Array(owner.handle.description.utf8)), sharedFolder(owner.account))
          })
      case .sharedOwner(let owner):
        return .init(
          try library.sharedEntries(account, owner: owner).map { shared in
            var entry = shownEntry(try library.attributes(shared.ino, credentials(caller)))
            entry.entryTimeout = sharedTimeout(entry.attributes)
            return (FileName(shared.name), entry)
          }, areForeign: true)
      case .versions(let ino):
        return .init(
          try library.versionFolders(of: ino, credentials(caller)).map { folder in
            let node = Node.versionFolder(item: folder.item)
            return (
              FileName(folder.name), Entry(node: node.id, attributes: self.folder(node, time: folder.mtime))
            )
          })
      case .versionFolder(let item):
        let owner = try library.versionOwner(of: item, credentials(caller))
        let files = try library.versionFiles(of: item, credentials(caller))
        return .init(
          files.map { file in
            (
              FileName(file.name),
              Entry(
                node: Node.versionFile(item: item, number: file.number).id, attributes: self.file(file, owner: owner),
                attributeTimeout: file.isOpen ? 0 : Self.forever)
            )
          }, areForeign: files.first?.isForeign ?? false)
      case .trash(let folder), .deleted(let folder):
        let entries = try library.trash(of: folder, credentials(caller))
        return .init(
          entries.map { (FileName($0.name), deletedEntry($0.attributes)) },
          areForeign: entries.first?.attributes.isForeign ?? false)
      case .formerOwner: return .init([])
      case .pastFolder(let number): return try pastListing(number, caller)
      case .versionFile, .pastLink: throw Errno.notDirectory
      }
    }
  }

  func releasedir(_ node: NodeID, handle: FileHandle, caller: RequestContext, reply: consuming EmptyReply) {
    _ = listings.remove(handle)
    reply.succeed()
  }

  func fsyncdir(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in try translated { try library.sync() } }
  }

  func readdir(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryReply
  ) {
    reply.answer { (buffer) throws(Errno) in
      try list(node, handle, from: cookie, caller) { name, entry, _, next in
        buffer.add(name, node: entry.attributes.node, mode: entry.attributes.mode, next: next)
      }
    }
  }

  func readdirplus(
    _ node: NodeID, handle: FileHandle, cookie: UInt64, caller: RequestContext, reply: consuming DirectoryPlusReply
  ) {
    _ = reply.answer { (buffer) throws(Errno) in
      try list(node, handle, from: cookie, caller) { name, entry, isForeign, next in
        guard buffer.add(name, entry, next: next) else { return false }
        // The kernel remembers an entry that it gets with attributes.
        if isForeign { foreignNodes.note(entry.node) }
        return true
      }
    }
  }

  /// Passes entries after `cookie` to `add`, with the cookie of the next, until it refuses one.
  private func list(
    _ node: NodeID, _ handle: FileHandle, from cookie: UInt64, _ caller: RequestContext,
    _ add: (FileName, Entry, _ isForeign: Bool, UInt64) -> Bool
  ) throws(Errno) {
    if cookie == 0, listings.beginsAgain(handle), let listing = try listing(of: Node(node), caller) {
      // rewinddir(3) shows the present entries.
      listings.renew(handle, listing)
    }
    if cookie < 1, !add(".", try dotEntry(node, parent: false, caller), false, 1) { return }
    if cookie < 2, !add("..", try dotEntry(node, parent: true, caller), false, 2) { return }
    if let listing = listings.listing(handle) {
      // Cookies 1 and 2 are the dots, so entry k follows k + 2.
      for index in Int(max(cookie, 2)) - 2..<max(listing.entries.count, Int(max(cookie, 2)) - 2) {
        let (name, entry) = listing.entries[index]
        if !add(name, entry, listing.areForeign, UInt64(index + 3)) { return }
      }
      return
    }
    guard let ino = Node(node).ino else { throw .badFileDescriptor }
    let timeout = min(restrictedFolders.timeout(in: ino), changedFolders.listedTimeout(in: ino))
    var position = cookie <= 2 ? 0 : Int64(bitPattern: cookie)
    while true {
      let batch = try translated {
        try library.list(
          ino, after: position, limit: Self.batch, notesAccess: accessTimes.notes(handle), credentials(caller))
      }
      guard !batch.isEmpty else { return }
      for (index, listed) in batch.enumerated() {
        // Of entries that share a cookie only the last moves it on, so that none is skipped when the buffer ends.
        let isLast = index + 1 == batch.count || batch[index + 1].cookie != listed.cookie
        let next = isLast ? listed.cookie : max(position, 2)
        // Whoever looks at what is damaged gets the error.
        let entry =
          listed.attributes.map { shownEntry($0, timeout: timeout) }
          ?? Entry(node: .none, attributes: FileAttributes(node: Node.inode(listed.ino).id, mode: 0))
        if !add(
          FileName(listed.name), entry, listed.attributes?.isForeign ?? false, UInt64(bitPattern: next))
        {
          return
        }
        if isLast { position = listed.cookie }
      }
    }
  }

  /// `.` or `..`, with no node to remember.
  private func dotEntry(_ node: NodeID, parent: Bool, _ caller: RequestContext) throws(Errno) -> Entry {
    let shown = parent ? try parentNode(of: node, caller) : node
    return Entry(node: .none, attributes: FileAttributes(node: shown, mode: S_IFDIR))
  }
}

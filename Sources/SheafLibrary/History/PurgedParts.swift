import SheafModel
import SheafStore

/// Removes the remains of a purged version from chunks of which other versions use a part.
///
/// A version that was cut short, or written in place, refers to parts of the chunks of the version before. Chunks go as
/// a whole, so the rest would stay as long as the part does. Such parts get chunks of their own before the purge: the
/// same bytes in another form. A version may have been packed since into chunks that it alone has; its former ones are
/// then those of which the versions that remain do not use every byte.
extension Library {
  /// Versions that are looked at with everybody waiting.
  private static let partedAtOnce = 256

  /// Chunks of a document of which its versions but for `number` do not use every byte.
  private func chunksWithRemains(of item: Int64, besides number: Int64) throws -> [Int64] {
    var used: [Int64: [Range<Int64>]] = [:]
    var next = Int64.max
    while next > 1 {
      try locked {
        let versions = try read { try $0.versions(item, below: next, limit: Self.partedAtOnce) }
        next = versions.last?.number ?? 0
        for version in versions where version.number != number {
          guard case .extents(let extents) = version.content else { continue }
          for extent in extents where extent.isStored {
            let (end, isTooLong) = extent.offset.addingReportingOverflow(extent.length)
            guard extent.offset >= 0, extent.length > 0, !isTooLong else { continue }
            Self.add(extent.offset..<end, to: &used[extent.chunk, default: []])
          }
        }
      }
    }
    var remaining = used.keys.sorted()[...]
    var found: [Int64] = []
    while !remaining.isEmpty {
      try locked {
        for chunk in remaining.prefix(Self.partedAtOnce) {
          // A damaged library may say anything of a chunk.
          guard let size = try read({ try $0.chunkSize(chunk) }), size < 0 || used[chunk] != [0..<size] else {
            continue
          }
          found.append(chunk)
        }
      }
      remaining = remaining.dropFirst(Self.partedAtOnce)
    }
    return found
  }

  /// Adds a range to ranges that do not touch each other, in their order.
  private static func add(_ range: Range<Int64>, to ranges: inout [Range<Int64>]) {
    let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
    let end = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
    guard first < end else { return ranges.insert(range, at: first) }
    let whole =
      min(range.lowerBound, ranges[first].lowerBound)..<max(range.upperBound, ranges[end - 1].upperBound)
    ranges.replaceSubrange(first..<end, with: [whole])
  }

  /// Gives the other versions of a document, and its contents, chunks of their own for parts of those of `number`.
  ///
  /// Documents that are being edited keep the parts that they have, and so do documents of more than 8 MiB, whose
  /// chunks are listed in nodes.
  ///
  /// - Throws: as ``purge(_:version:)``; nothing where there is no such version, or it cannot be purged.
  func partChunks(ofVersion number: Int64, of path: ItemPath) throws {
    let purged = try locked { () -> (item: Int64, chunks: Set<Int64>)? in
      try settleSessions()
      let (_, item) = try document(path, for: .purge)
      guard number != item.version, case .extents(let extents)? = try read({ try $0.version(item.id, number) })?.content
      else { return nil }
      return (item.id, Set(extents.lazy.filter(\.isStored).map(\.chunk)))
    }
    guard let purged else { return }
    let chunks = purged.chunks.union(try chunksWithRemains(of: purged.item, besides: number))
    try locked {
      try settleSessions()
      let (inode, item) = try document(path, for: .purge)
      // Another document may have the name by now.
      if item.id == purged.item { try partContents(of: inode, item, chunks) }
    }
    var next = Int64.max
    while next > 1 {
      try locked {
        let versions = try read { try $0.versions(purged.item, below: next, limit: Self.partedAtOnce) }
        next = versions.last?.number ?? 0
        let current = try read { try $0.item(purged.item)?.version }
        let others = try versions.filter { version in
          guard version.number != number, version.number != current, !version.isOpen else { return false }
          return try !parts(of: version.content, in: chunks).isEmpty
        }
        guard !others.isEmpty else { return }
        try makeChange(.purge, freesSpace: true) { change in
          for version in others {
            try change.rows.recode(
              version.item, version.number, to: withOwnChunks(version.content, chunks, change))
          }
        }
      }
    }
  }

  /// Does it with what is current, of which the document and its version tell the same.
  private func partContents(of inode: Inode, _ item: ItemRow, _ chunks: Set<Int64>) throws {
    guard let content = inode.row.content, inode.drafts.allSatisfy({ $0.session == nil && !$0.isChanged }),
      try !parts(of: content, in: chunks).isEmpty
    else { return }
    try makeChange(.purge, freesSpace: true) { change in
      var row = inode.row
      row.content = try withOwnChunks(content, chunks, change)
      try change.rows.update(row, keepsItem: true)
      if try change.rows.version(item.id, item.version)?.content == content, let new = row.content {
        try change.rows.recode(item.id, item.version, to: new)
      }
      change.whenRecorded { [row] in
        inode.row = row
        for draft in inode.drafts where draft.working != nil { draft.working = WorkingCopy(row.content ?? .empty) }
      }
    }
  }

  /// The runs of contents that are part of one of these chunks, and not all of it.
  private func parts(of content: StoredContent, in chunks: Set<Int64>) throws -> [Extent] {
    guard case .extents(let extents) = content else { return [] }
    return try extents.filter { extent in
      guard extent.isStored, chunks.contains(extent.chunk) else { return false }
      return try read { try $0.chunkSize(extent.chunk) } != extent.length
    }
  }

  /// The same contents, with chunks of their own for parts of these.
  private func withOwnChunks(
    _ content: StoredContent, _ chunks: Set<Int64>, _ change: Change
  ) throws -> StoredContent {
    guard case .extents(var extents) = content else { return content }
    let parts = Set(try parts(of: content, in: chunks))
    for (index, extent) in extents.enumerated() where parts.contains(extent) {
      do {
        let whole = try chunk(extent.chunk)
        let (end, isTooLong) = extent.offset.addingReportingOverflow(extent.length)
        guard extent.offset >= 0, extent.length > 0, !isTooLong, end <= Int64(whole.count) else { continue }
        let own = try whole[Int(extent.offset)..<Int(end)].withUnsafeBytes { try change.store([$0]) }
        extents[index] = Extent(chunk: own[0], length: extent.length)
      } catch let error as SheafError where error.kind == .corrupt {
        // `check` reports it; damaged bytes stay as they are.
        log.error("a part of a chunk was not copied", metadata: ["chunk": "\(extent.chunk)", "error": "\(error)"])
      }
    }
    return .extents(extents)
  }
}

import SheafStore

/// Reading takes the lock for a moment, and fetches and copies without it (docs/ARCHITECTURE.md, "Reading beside the
/// lock").
///
/// Rooms: `Chunks`.
extension Library {
  /// Carries out a plan that `makePlan` makes with the lock held; returns the number of bytes.
  ///
  /// Where the chunks cannot be had beside the lock, since they are not committed yet, or gone by now, or damaged, the
  /// read begins again and does all with the lock held: then what it finds is there, and what is wrong is said.
  ///
  /// - Parameters:
  ///   - beforeFetching: called without the lock, if chunks have to be fetched: tests have something happen there.
  ///   - makePlan: checks that the caller may read. It may be called twice.
  /// - Throws: ``AbsentContents`` where a hub has some of the bytes.
  func readBeside(
    into buffer: UnsafeMutableRawBufferPointer, _ beforeFetching: () -> Void, _ makePlan: () throws -> ReadPlan
  ) throws -> Int {
    var (plan, missing, cache, removals) = try locked { () -> (ReadPlan, [ChunkPart], ChunkCache, UInt64) in
      var plan = try makePlan()
      if !plan.absent.isEmpty { throw try absence(of: plan.absent) }
      let cache = chunks.cache
      plan.take(cache.value)
      let missing = plan.missing
      // Closing the library waits for this reader from here on.
      if !missing.isEmpty { store.readers.begin() }
      return (plan, missing, cache, missing.isEmpty ? 0 : cache.removals)
    }
    guard !missing.isEmpty else {
      try plan.copy(to: buffer)
      return plan.count
    }
    defer { store.readers.end() }
    beforeFetching()
    if let read = store.readBeside(missing, into: buffer) {
      for (chunk, bytes) in read.chunks { cache.insert(chunk, bytes, since: removals) }
      plan.take(read)
      // A chunk that is too short is one that the lock's holder complains of.
      if (try? plan.copy(to: buffer)) != nil { return plan.count }
    }
    return try locked {
      var plan = try makePlan()
      if !plan.absent.isEmpty { throw try absence(of: plan.absent) }
      try plan.fetch(from: self)
      try plan.copy(to: buffer)
      return plan.count
    }
  }
}

import SheafModel

/// Names of remembered documents to which own files were linked (rule 5 of ``Identity``), by the inodes of these files.
struct LinkedPlaces {
  /// A remembered name.
  struct Place {
    let parent: Int64
    let name: [UInt8]
    let time: Timestamp
  }

  private var places: [Int64: Place] = [:]

  subscript(ino: Int64) -> Place? { places[ino] }

  mutating func insert(_ place: Place, for ino: Int64) { places[ino] = place }

  mutating func remove(_ ino: Int64) { places[ino] = nil }

  /// Forgets what is older than the names are remembered.
  mutating func expire(at time: Timestamp) {
    if places.isEmpty { return }
    places = places.filter { time.nanoseconds - $0.value.time.nanoseconds < Identity.window }
  }
}

import Foundation
import SheafMount

/// The file systems that /etc/fstab names, by their places.
///
/// Source: fstab(5).
struct FileSystemTable {
  private let places: [String]

  /// - Parameter text: Lines of a device, a place and more; all others are passed over.
  init(parsing text: [UInt8]) {
    places = text.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      guard fields.count > 1, fields[0].first != UInt8(ascii: "#") else { return nil }
      var place = MountTable.unescaped(fields[1])
      // Not `none`, `swap` and the like.
      guard place.first == UInt8(ascii: "/") else { return nil }
      while place.last == UInt8(ascii: "/") { place.removeLast() }
      return place.isEmpty ? nil : String(decoding: place, as: UTF8.self)
    }
  }

  /// Reads /etc/fstab; without the file nothing is named.
  static func current() -> Self {
    Self(parsing: [UInt8](FileManager.default.contents(atPath: "/etc/fstab") ?? Data()))
  }

  /// The place above a path at which a file system should be and none is; nil where all are.
  ///
  /// - Parameter path: Absolute.
  func absentDisk(for path: String, _ mounted: MountTable) -> String? {
    places.first { place in
      path.hasPrefix(place + "/") && mounted.entry(at: Array(place.utf8)) == nil
    }
  }
}

import Foundation
import SheafWire

extension Send {
  /// A new document in `Documents` whose contents ride along.
  static func document(_ name: String, _ text: String, serial: Int64, item: WireID = WireID()) -> Send {
    Send(
      serial: serial, item: item, kind: .document, places: [Place(parent: .root, name)], mode: 0o644, mtime: 1,
      version: SentVersion(id: WireID(), base: nil, cause: .save, time: 1, contents: Data(text.utf8)))
  }
}

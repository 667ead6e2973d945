import SheafModel
import SheafWire

/// Names that the hub knows or makes, from bytes that need not be UTF-8.
enum Names {
  /// A document of this name says which others are plain files, as docs/REFERENCE.md explains.
  static let rules = Array(".sheafignore".utf8)

  /// `NAME (HANDLE DATE DEVICE).EXT`, for contents that go beside a document.
  static func beside(_ name: [UInt8], author: SendAuthor) -> [UInt8] {
    let device = author.deviceName.split { $0 == "/" || $0 == "\0" }.joined(separator: "-")
    let mark = "\(author.handle) \(author.now.secondsText.prefix(10)) \(device.prefix(40))"
    // Room for a name and an extension beside a long mark.
    return MarkedName.marked(name, String(decoding: Array(mark.utf8).prefix(120), as: UTF8.self), isFolder: false)
  }
}

/// The path of an item in an account's mount: `Documents/…` or `Shared/…`, as bytes, since names need not be UTF-8.
package struct ItemPath: Hashable, Sendable, CustomStringConvertible {
  /// The account whose mount the path is in, and which acts.
  package let account: AccountHandle
  /// The components' bytes; never empty strings, `.` or `..`.
  package let components: [[UInt8]]

  /// Splits `bytes` at `/`, dropping empty components and `.`.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` for `..` and NUL, `nameTooLong` for a component past 255 bytes.
  package init(account: AccountHandle, bytes: some Sequence<UInt8>) throws(SheafError) {
    self.account = account
    let whole = Array(bytes)
    var components: [[UInt8]] = []
    for part in whole.split(separator: UInt8(ascii: "/")) where part != [UInt8(ascii: ".")] {
      let component = Array(part)
      guard component != Array("..".utf8), !component.contains(0) else {
        throw SheafError(
          .invalid, subject: String(decoding: whole, as: UTF8.self).printable, reason: "has a component .. or a NUL",
          advice: "give the path as it is below the mount point")
      }
      guard component.count <= 255 else {
        throw SheafError(.nameTooLong, subject: String(decoding: component, as: UTF8.self).printable)
      }
      components.append(component)
    }
    self.components = components
  }

  package init(account: AccountHandle, _ text: String) throws(SheafError) {
    try self.init(account: account, bytes: text.utf8)
  }

  /// Whether bytes can be the name of an item: one component of a path, neither `.` nor `..`.
  package static func isComponent(_ name: [UInt8]) -> Bool {
    !name.isEmpty && name.count <= 255 && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && name != Array(".".utf8) && name != Array("..".utf8)
  }

  /// The path's bytes, components joined by `/`.
  package var bytes: [UInt8] { Array(components.joined(separator: [UInt8(ascii: "/")])) }

  /// The path as text; bytes that are not UTF-8 show as U+FFFD.
  package var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// The names that people give to versions.
package enum VersionLabel {
  /// Characters of a label.
  package static let longest = 200

  /// Whether a version can have this label: 1 to 200 printable characters.
  package static func isSound(_ label: String) -> Bool {
    !label.isEmpty && label.count <= longest && label.printable == label
  }
}

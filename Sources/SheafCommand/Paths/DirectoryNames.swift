import Glibc

/// The names in a folder of text names, such as those of `/proc`.
enum DirectoryNames {
  /// All names but `.` and `..`; none if the folder cannot be read.
  static func of(_ folder: String) -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var result: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { $0.prefix { $0 != 0 }.readable }
      if name != ".", name != ".." { result.append(name) }
    }
    return result
  }
}

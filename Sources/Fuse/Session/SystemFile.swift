import Glibc

/// Reads a small file of `/proc` or `/sys` in whole.
func readFile(_ path: String) throws(Errno) -> [UInt8] {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw .current }
  defer { close(descriptor) }
  var contents: [UInt8] = []
  var part = [UInt8](repeating: 0, count: 16_384)
  while true {
    let count = read(descriptor, &part, part.count)
    if count < 0 {
      let error = Errno.current
      if error == .interrupted { continue }
      throw error
    }
    if count == 0 { return contents }
    contents.append(contentsOf: part[..<count])
  }
}

/// Writes a setting to a file of `/proc` or `/sys` with one write(2).
func writeFile(_ path: String, _ value: String) throws(Errno) {
  let descriptor = open(path, O_WRONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw .current }
  defer { close(descriptor) }
  guard write(descriptor, value, value.utf8.count) == value.utf8.count else { throw .current }
}

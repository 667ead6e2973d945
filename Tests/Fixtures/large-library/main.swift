import Foundation
import Glibc
import SheafLibrary
import SheafModel

// Makes a large library for measuring, through the library and without a mount:
// `large-library LIBRARY documents COUNT`: documents of some hundred bytes, a thousand in a folder;
// `large-library LIBRARY versions PATH COUNT`: a document with so many versions of 4 KiB;
// `large-library LIBRARY entries PATH COUNT`: a folder with so many documents.

func fail(_ text: String) -> Never {
  FileHandle.standardError.write(Data((text + "\n").utf8))
  exit(64)
}

let arguments = CommandLine.arguments
guard arguments.count > 3, let count = arguments.last.flatMap(Int.init) else {
  fail("usage: large-library LIBRARY documents COUNT | versions PATH COUNT | entries PATH COUNT")
}
let library = try Library.open(LibraryLocation(path: arguments[1]))
let handle = try library.accounts().first?.handle ?? AccountHandle("alice@example.com")
if try library.accounts().isEmpty { _ = try library.addAccount(handle, name: nil) }
let root = try library.documents(of: handle)

func makeFolder(_ name: String) throws -> Int64 {
  try library.make(.folder, root, Array(name.utf8), mode: 0o755, .library).ino
}

func save(_ name: String, in folder: Int64, _ bytes: [UInt8]) throws {
  let made = try library.create(folder, Array(name.utf8), mode: 0o644, flags: O_RDWR | O_CREAT, .library)
  try bytes.withUnsafeBytes { try library.write(made.handle, at: 0, $0) }
  try library.flush(made.handle)
  try library.release(made.handle)
}

switch arguments[2] {
case "documents":
  var folder: Int64 = 0
  for number in 0..<count {
    if number % 1000 == 0 { folder = try makeFolder("folder \(number / 1000)") }
    let text = "document \(number)\n"
    try save("document \(number).txt", in: folder, Array(String(repeating: text, count: 20).utf8))
  }
case "versions":
  try save(arguments[3], in: root, [])
  let ino = try library.lookup(root, Array(arguments[3].utf8), .library).ino
  var bytes = [UInt8](repeating: UInt8(ascii: "-"), count: 4096)
  for number in 1...count {
    bytes.replaceSubrange(0..<10, with: String(format: "%010d", number).utf8)
    let handle = try library.open(ino, flags: O_RDWR, .library)
    try bytes.withUnsafeBytes { try library.write(handle, at: 0, $0) }
    try library.flush(handle)
    try library.release(handle)
  }
case "entries":
  let folder = try makeFolder(arguments[3])
  for number in 0..<count { try save("entry \(number)", in: folder, Array("entry \(number)".utf8)) }
default: fail("there is no \(arguments[2])")
}
try library.close()

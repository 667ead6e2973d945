import Foundation
import Glibc
import SheafLibrary
import SheafModel

// A process that works on a library and is killed: `library-fixture LIBRARY COUNT` makes COUNT closed documents and one
// that stays open after an fsync and later writes, prints a line, and dies by SIGKILL.

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

let arguments = CommandLine.arguments
guard arguments.count == 3, let count = Int(arguments[2]) else {
  print("usage: library-fixture LIBRARY COUNT")
  exit(64)
}
let library = try Library.open(LibraryLocation(path: arguments[1]))
let account = try AccountHandle("alice@example.com")
if try library.accounts().isEmpty { _ = try library.addAccount(account, name: nil) }
let root = try library.documents(of: account)

for number in 0..<count {
  let made = try library.create(root, bytes("closed \(number)"), mode: 0o644, flags: O_RDWR | O_CREAT, .library)
  try bytes("contents \(number)").withUnsafeBytes { try library.write(made.handle, at: 0, $0) }
  try library.flush(made.handle)
  try library.release(made.handle)
}
let open = try library.create(root, bytes("open"), mode: 0o644, flags: O_RDWR | O_CREAT, .library)
try bytes("first").withUnsafeBytes { try library.write(open.handle, at: 0, $0) }
try library.fsync(open.attributes.ino)
// Spilled and never saved: chunks that no row refers to.
let large = (0..<(9 << 20)).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
try large.withUnsafeBytes { try library.write(open.handle, at: 5, $0) }
try bytes("more").withUnsafeBytes { try library.write(open.handle, at: 0, $0) }
kill(getpid(), SIGKILL)

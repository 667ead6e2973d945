import Glibc

private let page = 4096

extension Case {
  static let mapping: [Case] = [
    Case("a shared mapping's stores show in read after msync, and last", needs: .descriptors) { fs in
      try fs.put("file", zeros(10 * page))
      let file = try fs.open("file", O_RDWR)
      let map = try Mapping(file, 10 * page, writable: true)
      for index in 0..<10 { map.bytes[index * page + 7] = UInt8(index + 1) }
      try map.synchronize()
      var expected = zeros(10 * page)
      for index in 0..<10 { expected[index * page + 7] = UInt8(index + 1) }
      try expect(file.pread(20 * page, at: 0) == expected, "read differs")
      try expect(fs.contents("file") == expected, "contents differ")
      try map.unmap()
      try file.close()
      try expect(fs.contents("file") == expected, "contents differ after closing")
    },
    Case("stores count from munmap and close on, without msync", needs: .descriptors) { fs in
      try fs.put("file", pattern(3 * page))
      let file = try fs.open("file", O_RDWR)
      let map = try Mapping(file, 3 * page, writable: true)
      try file.close()
      map.bytes[page] = 0xAA
      map.bytes[2 * page + 5] = 0xBB
      try map.unmap()
      var expected = pattern(3 * page)
      expected[page] = 0xAA
      expected[2 * page + 5] = 0xBB
      try expect(fs.contents("file") == expected, "contents differ")
    },
    Case("a mapping sees what write writes, and read what it stores", needs: .descriptors) { fs in
      try fs.put("file", zeros(2 * page))
      let mapped = try fs.open("file", O_RDWR)
      let other = try fs.open("file", O_RDWR)
      let map = try Mapping(mapped, 2 * page, writable: true)
      try expect(map.bytes[100], is: 0, "the mapping before")
      try other.pwriteAll([42], at: 100)
      try expect(map.bytes[100], is: 42, "the mapping after a write")
      map.bytes[page + 1] = 43
      try expect(other.pread(1, at: Int64(page + 1)), is: [43], "read after a store")
      try map.unmap()
      try mapped.close()
      try other.close()
    },
    Case("two shared mappings of one file are one memory", needs: .descriptors) { fs in
      try fs.put("file", zeros(page))
      try fs.link("file", "link")
      let one = try fs.open("file", O_RDWR)
      let two = try fs.open("link", O_RDWR)
      let first = try Mapping(one, page, writable: true)
      let second = try Mapping(two, page, writable: true)
      first.bytes[1] = 11
      second.bytes[2] = 22
      try expect(second.bytes[1], is: 11, "the second mapping")
      try expect(first.bytes[2], is: 22, "the first mapping")
      try first.unmap()
      try second.unmap()
      try one.close()
      try two.close()
      try expect(Array(fs.contents("file")[..<3]), is: [0, 11, 22], "contents")
    },
    Case("a private mapping's stores stay private", needs: .descriptors) { fs in
      try fs.put("file", pattern(page))
      let file = try fs.open("file", O_RDONLY)
      let map = try Mapping(file, page, writable: true, shared: false)
      map.bytes[0] = ~map.bytes[0]
      try map.unmap()
      try file.close()
      try expect(fs.contents("file") == pattern(page), "contents differ")
    },
    Case("the rest of the last page reads as zeros and is not written", needs: .descriptors) { fs in
      try fs.put("file", pattern(page + 10))
      let file = try fs.open("file", O_RDWR)
      let map = try Mapping(file, 2 * page, writable: true)
      try expect(map.bytes[page + 9], is: pattern(page + 10)[page + 9], "the last byte")
      try expect(map.bytes[page + 10], is: 0, "the byte after the end")
      map.bytes[page + 100] = 99
      map.bytes[page + 3] = 77
      try map.synchronize()
      try map.unmap()
      try file.close()
      try expect(fs.lstat("file").size, is: Int64(page + 10), "size")
      try fs.truncate("file", Int64(2 * page))
      try expect(fs.contents("file")[page + 100], is: 0, "the byte after the old end")
      try expect(fs.contents("file")[page + 3], is: 77, "the byte stored")
    },
    Case("a mapping outlives its file's name", needs: .descriptors) { fs in
      try fs.put("file", pattern(page))
      let file = try fs.open("file", O_RDWR)
      let map = try Mapping(file, page, writable: true)
      try fs.unlink("file")
      map.bytes[5] = 55
      try map.synchronize()
      try expect(file.pread(1, at: 5), is: [55], "read by the handle")
      try map.unmap()
      try file.close()
    },
    Case("mapping a file that grows shows the new bytes", needs: .descriptors) { fs in
      try fs.put("file", pattern(page))
      let file = try fs.open("file", O_RDWR)
      let map = try Mapping(file, 4 * page, writable: true)
      try file.truncate(Int64(4 * page))
      map.bytes[3 * page] = 33
      try expect(map.bytes[2 * page], is: 0, "a byte of the hole")
      try map.unmap()
      try file.close()
      try expect(fs.contents("file")[3 * page], is: 33, "the byte stored")
    },
    Case("mapping needs a handle for it: EACCES", needs: .descriptors) { fs in
      try fs.put("file", pattern(page))
      let reader = try fs.open("file", O_RDONLY)
      try expect(EACCES) { try Mapping(reader, page, writable: true) }
      try reader.close()
      let writer = try fs.open("file", O_WRONLY)
      try expect(EACCES) { try Mapping(writer, page, writable: false) }
      try writer.close()
    },
    Case("sixteen megabytes of random stores through a mapping all arrive", needs: .descriptors) { fs in
      let size = 16 << 20
      let file = try fs.open("file", O_RDWR | O_CREAT)
      try file.truncate(Int64(size))
      let map = try Mapping(file, size, writable: true)
      var random = SeededRandom(seed: 3)
      var expected = zeros(size)
      for _ in 0..<20_000 {
        let index = Int.random(in: 0..<size, using: &random)
        let byte = UInt8.random(in: 1...255, using: &random)
        map.bytes[index] = byte
        expected[index] = byte
      }
      try map.unmap()
      try file.synchronize(dataOnly: false)
      try file.close()
      try expect(fs.contents("file") == expected, "contents differ")
    },
  ]
}

/// A mapping of an open file into memory.
private final class Mapping {
  let bytes: UnsafeMutableBufferPointer<UInt8>

  init(_ file: any OpenFile, _ count: Int, writable: Bool, shared: Bool = true) throws(Errno) {
    let protection = writable ? PROT_READ | PROT_WRITE : PROT_READ
    let start = mmap(nil, count, protection, shared ? MAP_SHARED : MAP_PRIVATE, file.descriptor!, 0)
    guard let start, start != MAP_FAILED else { throw .last("mmap") }
    bytes = UnsafeMutableBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: count)
  }

  func synchronize() throws(Errno) { try check(msync(bytes.baseAddress!, bytes.count, Int32(MS_SYNC)), "msync") }
  func unmap() throws(Errno) { try check(munmap(bytes.baseAddress!, bytes.count), "munmap") }
}

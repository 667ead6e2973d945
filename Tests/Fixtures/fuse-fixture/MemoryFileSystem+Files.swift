import Fuse
import Glibc

extension MemoryFileSystem {
  func open(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    reply.answer { () throws(Errno) in
      try perform("open") { (state) throws(Errno) in
        if flags.truncates { state.truncate(node, to: 0) }
        return OpenResult(
          handle: state.newHandle(), keepCache: true, directIO: isDirect, noFlush: !flags.isWritable)
      }
    }
  }

  func create(
    _ name: FileName, in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext,
    reply: consuming CreateReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("create") { (state) throws(Errno) in
        let id = try state.make(name, in: parent, mode: S_IFREG | mode, caller: caller)
        return (try state.entry(id), OpenResult(handle: state.newHandle(), keepCache: true, directIO: isDirect))
      }
    }
  }

  func read(
    _ node: NodeID, handle: FileHandle, offset: Int64, size: Int, caller: RequestContext, reply: consuming DataReply
  ) {
    count("read")
    reply.fill(capacity: size) { (buffer) throws(Errno) in
      try state.withLock { (state) throws(Errno) in
        state.largestRead = max(state.largestRead, size)
        let bytes = try state.bytes(of: node, offset: offset, count: size)
        buffer.copyBytes(from: bytes)
        return bytes.count
      }
    }
  }

  func write(
    _ node: NodeID, handle: FileHandle, offset: Int64, data: UnsafeRawBufferPointer, origin: WriteOrigin,
    caller: RequestContext, reply: consuming WriteReply
  ) {
    if origin.isWriteBack { count("write-back") }
    let data = [UInt8](data)
    reply.answer { () throws(Errno) in
      try perform("write") { (state) throws(Errno) in
        state.largestWrite = max(state.largestWrite, data.count)
        state.store(data, in: node, offset: offset)
        return data.count
      }
    }
  }

  func flush(_ node: NodeID, handle: FileHandle, lockOwner: UInt64, caller: RequestContext, reply: consuming EmptyReply)
  {
    count("flush")
    reply.succeed()
  }

  func release(
    _ node: NodeID, handle: FileHandle, flags: OpenFlags, caller: RequestContext, reply: consuming EmptyReply
  ) {
    count("release")
    _ = state.withLock { $0.openHandles.remove(handle) }
    reply.succeed()
  }

  func fsync(_ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply) {
    count(dataOnly ? "fdatasync" : "fsync")
    reply.succeed()
  }

  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: FallocateMode, offset: Int64, length: Int64, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("fallocate") { (state) throws(Errno) in
        if mode.contains(.punchHole) || mode.contains(.zeroRange) {
          state.punch(node, offset: offset, length: length)
        }
        let size = try state.node(node).attributes.size
        if !mode.contains(.keepSize), offset + length > size { state.truncate(node, to: offset + length) }
      }
    }
  }

  func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int64, whence: Whence, caller: RequestContext,
    reply: consuming LseekReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("lseek") { (state) throws(Errno) in
        let found = try state.node(node)
        guard offset < found.attributes.size else { throw .noSuchAddressOrDevice }
        if whence == .data {
          let next = found.blocks.keys.filter { ($0 + 1) * blockSize > offset }.min()
          guard let next else { throw .noSuchAddressOrDevice }
          return max(offset, next * blockSize)
        }
        var block = offset / blockSize
        while found.blocks[block] != nil { block += 1 }
        return min(max(offset, block * blockSize), found.attributes.size)
      }
    }
  }

  func copyFileRange(
    from source: FileRange, to target: FileRange, length: Int, caller: RequestContext, reply: consuming WriteReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("copy_file_range") { (state) throws(Errno) in
        let bytes = try state.bytes(of: source.node, offset: source.offset, count: length)
        state.store(bytes, in: target.node, offset: target.offset)
        return bytes.count
      }
    }
  }

  func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, flags: IoctlFlags, caller: RequestContext,
    reply: consuming IoctlReply
  ) {
    count("ioctl")
    reply.fail(.inappropriateIOCTLForDevice)
  }
}

private let blockSize: Int64 = 4096

extension MemoryFileSystem.State {
  func bytes(of id: NodeID, offset: Int64, count: Int) throws(Errno) -> [UInt8] {
    let node = try node(id)
    let end = min(offset + Int64(count), node.attributes.size)
    guard offset < end else { return [] }
    var result = [UInt8](repeating: 0, count: Int(end - offset))
    var position = offset
    while position < end {
      let start = Int(position % blockSize)
      let part = min(Int(blockSize) - start, Int(end - position))
      if let block = node.blocks[position / blockSize] {
        result.replaceSubrange(
          Int(position - offset)..<Int(position - offset) + part, with: block[start..<start + part])
      }
      position += Int64(part)
    }
    return result
  }

  mutating func store(_ bytes: [UInt8], in id: NodeID, offset: Int64) {
    var done = 0
    while done < bytes.count {
      let position = offset + Int64(done)
      let start = Int(position % blockSize)
      let part = min(Int(blockSize) - start, bytes.count - done)
      let index = position / blockSize
      var block = nodes[id]?.blocks[index] ?? [UInt8](repeating: 0, count: Int(blockSize))
      block.replaceSubrange(start..<start + part, with: bytes[done..<done + part])
      nodes[id]?.blocks[index] = block
      done += part
    }
    let size = nodes[id]?.attributes.size ?? 0
    nodes[id]?.attributes.size = max(size, offset + Int64(bytes.count))
    nodes[id]?.attributes.modificationTime = currentTime()
  }

  /// Makes a hole of the whole blocks in a range, and zeros of the rest.
  mutating func punch(_ id: NodeID, offset: Int64, length: Int64) {
    for (index, block) in nodes[id]?.blocks ?? [:] {
      let start = max(offset - index * blockSize, 0)
      let end = min(offset + length - index * blockSize, blockSize)
      guard start < end else { continue }
      var block: [UInt8]? = end - start == blockSize ? nil : block
      for position in start..<end { block?[Int(position)] = 0 }
      nodes[id]?.blocks[index] = block
    }
  }

  mutating func truncate(_ id: NodeID, to size: Int64) {
    let old = nodes[id]?.attributes.size ?? 0
    if size < old { punch(id, offset: size, length: old - size + blockSize) }
    nodes[id]?.attributes.size = size
    nodes[id]?.attributes.modificationTime = currentTime()
  }
}

import Fuse
import Glibc

extension MemoryFileSystem {
  func lookup(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EntryReply) {
    reply.answer { () throws(Errno) in
      try perform("lookup") { (state) throws(Errno) in
        do throws(Errno) {
          return try state.entry(try state.child(name, in: parent))
        } catch .noSuchFileOrDirectory {
          return .negative(timeout: Entry.forever)
        }
      }
    }
  }

  func forget(_ nodes: [Forgotten]) {
    count("forget")
    state.withLock { state in
      for forgotten in nodes { state.nodes[forgotten.node]?.lookups -= forgotten.count }
    }
    wasForgotten.signal()
  }

  func mknod(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64, caller: RequestContext,
    reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("mknod") { (state) throws(Errno) in
        try state.entry(try state.make(name, in: parent, mode: mode, device: device, caller: caller))
      }
    }
  }

  func mkdir(_ name: FileName, in parent: NodeID, mode: UInt32, caller: RequestContext, reply: consuming EntryReply) {
    reply.answer { () throws(Errno) in
      try perform("mkdir") { (state) throws(Errno) in
        try state.entry(try state.make(name, in: parent, mode: S_IFDIR | mode, caller: caller))
      }
    }
  }

  func symlink(
    _ name: FileName, in parent: NodeID, target: [UInt8], caller: RequestContext, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("symlink") { (state) throws(Errno) in
        let id = try state.make(name, in: parent, mode: S_IFLNK | 0o777, caller: caller)
        state.nodes[id]?.target = target
        state.nodes[id]?.attributes.size = Int64(target.count)
        return try state.entry(id)
      }
    }
  }

  func readlink(_ node: NodeID, caller: RequestContext, reply: consuming LinkReply) {
    reply.answer { () throws(Errno) in
      try perform("readlink") { (state) throws(Errno) in try state.node(node).target }
    }
  }

  func link(
    _ node: NodeID, as newName: FileName, in newParent: NodeID, caller: RequestContext, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("link") { (state) throws(Errno) in
        guard try state.node(newParent).positions[newName] == nil else { throw .fileExists }
        state.add(newName, node, to: newParent)
        state.nodes[node]?.attributes.linkCount += 1
        return try state.entry(node)
      }
    }
  }

  func unlink(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      try perform("unlink") { (state) throws(Errno) in
        let id = try state.child(name, in: parent)
        state.remove(name, from: parent)
        state.nodes[id]?.attributes.linkCount -= 1
      }
    }
  }

  func rmdir(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      try perform("rmdir") { (state) throws(Errno) in
        let id = try state.child(name, in: parent)
        guard try state.node(id).children.isEmpty else { throw .directoryNotEmpty }
        state.remove(name, from: parent)
      }
    }
  }

  func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags,
    caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      try perform("rename") { (state) throws(Errno) in
        let id = try state.child(name, in: parent)
        let replaced = try? state.child(newName, in: newParent)
        if flags.contains(.noReplace), replaced != nil { throw .fileExists }
        if flags.contains(.exchange), replaced == nil { throw .noSuchFileOrDirectory }
        state.remove(name, from: parent)
        state.remove(newName, from: newParent)
        state.add(newName, id, to: newParent)
        if flags.contains(.exchange), let replaced { state.add(name, replaced, to: parent) }
      }
    }
  }
}

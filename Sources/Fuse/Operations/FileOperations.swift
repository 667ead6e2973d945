import CFuse
import Glibc

extension Operations {
  /// Open files.
  static func addFiles(to table: inout fuse_lowlevel_ops) {
    addOpening(to: &table)
    addContents(to: &table)
  }

  private static func addOpening(to table: inout fuse_lowlevel_ops) {
    table.open = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.open(
        NodeID(node), flags: OpenFlags(info!), caller: call.caller,
        reply: OpenReply(request: call.pending("open")))
    }
    table.create = { request, parent, name, mode, info in
      let call = IncomingRequest(request!)
      // FUSE_TMPFILE (CFuse.h, cfuse_session_adopt_device).
      if name![0] == CChar(UInt8(ascii: "/")) {
        return call.fileSystem.tmpfile(
          in: NodeID(parent), mode: mode, flags: OpenFlags(info!), caller: call.caller,
          reply: CreateReply(request: call.pending("tmpfile")))
      }
      call.fileSystem.create(
        FileName(cString: name!), in: NodeID(parent), mode: mode, flags: OpenFlags(info!), caller: call.caller,
        reply: CreateReply(request: call.pending("create")))
    }
    table.flush = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.flush(
        NodeID(node), handle: FileHandle(info!), lockOwner: info!.pointee.lock_owner, caller: call.caller,
        reply: EmptyReply(request: call.pending("flush")))
    }
    table.release = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.release(
        NodeID(node), handle: FileHandle(info!), flags: OpenFlags(info!), caller: call.caller,
        reply: EmptyReply(request: call.pending("release")))
    }
    table.fsync = { request, node, dataOnly, info in
      let call = IncomingRequest(request!)
      call.fileSystem.fsync(
        NodeID(node), handle: FileHandle(info!), dataOnly: dataOnly != 0, caller: call.caller,
        reply: EmptyReply(request: call.pending("fsync")))
    }
    table.ioctl = { request, node, command, _, info, flags, _, _, outputSize in
      let call = IncomingRequest(request!)
      call.fileSystem.ioctl(
        NodeID(node), handle: FileHandle(info!), command: command, flags: IoctlFlags(rawValue: flags),
        caller: call.caller, reply: IoctlReply(request: call.pending("ioctl"), outputSize: outputSize))
    }
  }

  private static func addContents(to table: inout fuse_lowlevel_ops) {
    table.read = { request, node, size, offset, info in
      let call = IncomingRequest(request!)
      guard isRange(offset, size) else { return call.pending("read").fail(.invalidArgument) }
      call.fileSystem.read(
        NodeID(node), handle: FileHandle(info!), offset: Int64(offset), size: size, caller: call.caller,
        reply: DataReply(request: call.pending("read")))
    }
    table.write = { request, node, data, size, offset, info in
      let call = IncomingRequest(request!)
      guard isRange(offset, size) else { return call.pending("write").fail(.invalidArgument) }
      let origin = WriteOrigin(isWriteBack: info!.pointee.writepage != 0, openFlags: OpenFlags(info!))
      call.fileSystem.write(
        NodeID(node), handle: FileHandle(info!), offset: Int64(offset),
        data: UnsafeRawBufferPointer(start: data, count: size), origin: origin, caller: call.caller,
        reply: WriteReply(request: call.pending("write")))
    }
    table.fallocate = { request, node, mode, offset, length, info in
      let call = IncomingRequest(request!)
      guard isRange(offset, Int(length)) else { return call.pending("fallocate").fail(.invalidArgument) }
      call.fileSystem.fallocate(
        NodeID(node), handle: FileHandle(info!), mode: FallocateMode(rawValue: mode), offset: Int64(offset),
        length: Int64(length), caller: call.caller, reply: EmptyReply(request: call.pending("fallocate")))
    }
    table.lseek = { request, node, offset, whence, info in
      let call = IncomingRequest(request!)
      call.fileSystem.lseek(
        NodeID(node), handle: FileHandle(info!), offset: Int64(offset), whence: Whence(rawValue: whence),
        caller: call.caller, reply: LseekReply(request: call.pending("lseek")))
    }
    table.copy_file_range = { request, source, sourceOffset, sourceInfo, target, offset, info, length, _ in
      let call = IncomingRequest(request!)
      guard isRange(sourceOffset, length), isRange(offset, length) else {
        return call.pending("copy_file_range").fail(.invalidArgument)
      }
      call.fileSystem.copyFileRange(
        from: FileRange(node: NodeID(source), handle: FileHandle(sourceInfo!), offset: Int64(sourceOffset)),
        to: FileRange(node: NodeID(target), handle: FileHandle(info!), offset: Int64(offset)), length: length,
        caller: call.caller, reply: WriteReply(request: call.pending("copy_file_range")))
    }
  }
}

/// Whether a file can have `length` bytes from `offset` on. Later calculations rely on that.
private func isRange(_ offset: off_t, _ length: Int) -> Bool {
  offset >= 0 && length >= 0 && !Int64(offset).addingReportingOverflow(Int64(length)).overflow
}

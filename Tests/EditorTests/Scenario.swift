/// A way in which a program saves `doc`, in the folder where it lies.
struct Scenario: Sendable, CustomStringConvertible {
  let name: String
  /// The program it needs; nil where every system has it.
  let program: String?
  /// Run once before, where `doc` has its old contents.
  var prepare = ""
  /// A script that leaves `$TEXT` and a newline in `doc`; `$OUT` is a folder on another file system, in which the
  /// file `new` holds just that.
  var save = ""
  /// For an interactive program: what to type to save `one` and `two` in one session, and then to leave.
  var keys: [String] = []
  /// Versions that one save makes.
  var versions = 1
  /// Whether the program sets the mode to another.
  var setsMode = false
  /// A file that is left with the contents before.
  var backup: String?
  /// Whether it makes something beside the document that nothing tells to be temporary, or removes the document, which
  /// leaves a share of the document alone, and takes a file for it that it made before.
  var needsFolder: Bool { Self.needingFolder.contains(name) }

  private static let needingFolder: Set = [
    "sed -i'bak/*'", "mv of a new file", "mv --backup", "awk and mv of a plain name", "dance plain_name",
    "dance other_folder", "dance exchanged", "dance anonymous", "rsync --delay-updates",
    "dance unlink_rename", "dance unlink_link",
  ]

  var description: String { name }

  static let interactiveOnes = interactive

  static let all: [Scenario] = shell + tools + languages + dances + editors + interactive

  private static let shell: [Scenario] = [
    .init(name: "redirection", program: nil, save: #"printf '%s\n' "$TEXT" > doc"#),
    .init(name: "cat", program: nil, save: #"cat "$OUT/new" > doc"#),
    .init(name: "tee", program: nil, save: #"tee doc < "$OUT/new" > /dev/null"#),
    .init(name: "cp", program: nil, save: #"cp "$OUT/new" doc"#),
    .init(name: "cp --backup", program: nil, save: #"cp --backup=simple "$OUT/new" doc"#, backup: "doc~"),
    .init(name: "cp --backup=numbered", program: nil, save: #"cp --backup=numbered "$OUT/new" doc"#),
    .init(name: "cp --remove-destination", program: nil, save: #"cp --remove-destination "$OUT/new" doc"#),
    .init(name: "install", program: nil, save: #"install -m 640 "$OUT/new" doc"#),
    .init(name: "install --backup", program: nil, save: #"install -b -m 640 "$OUT/new" doc"#, backup: "doc~"),
    .init(name: "mv from elsewhere", program: nil, save: #"chmod 640 "$OUT/new"; mv "$OUT/new" doc"#),
    .init(name: "mv of a new file", program: nil, save: #"printf '%s\n' "$TEXT" > other; mv other doc"#),
    .init(
      name: "mv --backup", program: nil, save: #"printf '%s\n' "$TEXT" > other; mv -b other doc"#,
      backup: "doc~"),
    .init(name: "dd", program: nil, save: #"dd if="$OUT/new" of=doc status=none"#),
    .init(
      name: "dd conv=notrunc and truncate", program: nil,
      save: #"printf x >> doc; dd if="$OUT/new" of=doc conv=notrunc status=none; truncate -s 4 doc"#, versions: 3),
  ]

  private static let tools: [Scenario] = [
    .init(name: "sed -i", program: "sed", save: #"sed -i "s/.*/$TEXT/" doc"#),
    .init(name: "sed -i.bak", program: "sed", save: #"sed -i.bak "s/.*/$TEXT/" doc"#, backup: "doc.bak"),
    .init(
      name: "sed -i'bak/*'", program: "sed", prepare: "mkdir bak", save: #"sed -i'bak/*' "s/.*/$TEXT/" doc"#,
      backup: "bak/doc"),
    .init(name: "perl -i", program: "perl", save: #"perl -pi -e "s/.*/$TEXT/" doc"#),
    .init(name: "perl -i.bak", program: "perl", save: #"perl -pi.bak -e "s/.*/$TEXT/" doc"#, backup: "doc.bak"),
    .init(name: "truncate and cat", program: nil, save: #"truncate -s 0 doc; cat "$OUT/new" >> doc"#),
    .init(name: "ed", program: "ed", save: #"printf '1c\n%s\n.\nw\nq\n' "$TEXT" | ed -s doc"#),
    .init(name: "rsync", program: "rsync", save: #"rsync -I "$OUT/new" doc"#),
    .init(name: "rsync -ab", program: "rsync", save: #"rsync -Ib "$OUT/new" doc"#, backup: "doc~"),
    .init(name: "rsync --inplace", program: "rsync", save: #"rsync -I --inplace "$OUT/new" doc"#),
    .init(name: "rsync --delay-updates", program: "rsync", save: #"rsync -I --delay-updates "$OUT/new" doc"#),
    .init(name: "rsync -aX", program: "rsync", save: #"chmod 640 "$OUT/new"; rsync -aIX "$OUT/new" doc"#),
    .init(
      name: "git stash", program: "git",
      prepare: """
        export GIT_DIR="$OUT/git" GIT_WORK_TREE=.; git init -q -b main; git config user.email a@b.c
        git config user.name A; git add doc; git commit -q -m old
        """,
      save: """
        export GIT_DIR="$OUT/git" GIT_WORK_TREE=.; printf '%s\\n' "$TEXT" > doc
        git stash -q
        # `Shared/OWNER` goes for a moment with its only document (docs/LIMITS.md).
        cd "$PWD"
        git stash pop -q
        """, versions: 3),
    .init(
      name: "git checkout", program: "git",
      prepare: """
        export GIT_DIR="$OUT/git" GIT_WORK_TREE=.; git init -q -b main; git config user.email a@b.c
        git config user.name A; git add doc; git commit -q -m old
        for text in one two; do git checkout -q -f -b $text; echo $text > "$OUT/blob"
          git update-index --cacheinfo 100644,$(git hash-object -w "$OUT/blob"),doc; git commit -q -m $text; done
        git checkout -q -f main
        """, save: #"GIT_DIR="$OUT/git" GIT_WORK_TREE=. git checkout -q -f "$TEXT""#),
    .init(
      name: "git restore", program: "git",
      prepare: """
        export GIT_DIR="$OUT/git" GIT_WORK_TREE=.; git init -q -b main; git config user.email a@b.c
        git config user.name A; git add doc; git commit -q -m old
        for text in one two; do git checkout -q -f -b $text; echo $text > "$OUT/blob"
          git update-index --cacheinfo 100644,$(git hash-object -w "$OUT/blob"),doc; git commit -q -m $text; done
        git checkout -q -f main
        """, save: #"GIT_DIR="$OUT/git" GIT_WORK_TREE=. git restore --source="$TEXT" doc"#),
    .init(
      name: "tar", program: "tar",
      save:
        #"mkdir -p "$OUT/tar"; cp "$OUT/new" "$OUT/tar/doc"; chmod 640 "$OUT/tar/doc"; tar -C "$OUT/tar" -cf "$OUT/doc.tar" doc; tar -xf "$OUT/doc.tar""#
    ),
    .init(
      name: "tar --overwrite", program: "tar",
      save:
        #"mkdir -p "$OUT/tar"; cp "$OUT/new" "$OUT/tar/doc"; chmod 640 "$OUT/tar/doc"; tar -C "$OUT/tar" -cf "$OUT/doc.tar" doc; tar --overwrite -xf "$OUT/doc.tar""#
    ),
    .init(
      name: "tar --unlink-first", program: "tar",
      save:
        #"mkdir -p "$OUT/tar"; cp "$OUT/new" "$OUT/tar/doc"; chmod 640 "$OUT/tar/doc"; tar -C "$OUT/tar" -cf "$OUT/doc.tar" doc; tar -U -xf "$OUT/doc.tar""#
    ),
    .init(
      name: "patch", program: "patch", save: #"diff -u doc "$OUT/new" > "$OUT/diff" || true; patch -s doc "$OUT/diff""#),
    .init(
      name: "patch --backup", program: "patch",
      save:
        #"diff -u doc "$OUT/new" > "$OUT/diff" || true; patch -s -b doc "$OUT/diff" || patch -s -b doc "$OUT/diff""#,
      backup: "doc.orig"),
    .init(name: "sort -o", program: "sort", save: #"sort -o doc "$OUT/new""#),
    .init(name: "shuf -o", program: "shuf", save: #"shuf -o doc "$OUT/new""#),
    .init(name: "sponge", program: "sponge", save: #"sponge doc < "$OUT/new""#),
    .init(name: "dos2unix", program: "dos2unix", save: #"printf '%s\r\n' "$TEXT" > doc; dos2unix -q doc"#, versions: 2),
    .init(name: "iconv -o", program: "iconv", save: #"iconv -f utf-8 -t utf-8 -o doc "$OUT/new""#),
    .init(name: "recode", program: "recode", save: #"recode -f utf8..latin1 < "$OUT/new" > doc"#),
    .init(name: "gawk -i inplace", program: "gawk", save: #"gawk -i inplace -v t="$TEXT" '{print t}' doc"#),
    .init(
      name: "gawk -i inplace with a backup", program: "gawk",
      save: #"gawk -i inplace -v inplace::suffix=.bak -v t="$TEXT" '{print t}' doc"#, backup: "doc.bak"),
    .init(name: "awk and mv", program: "awk", save: #"awk -v t="$TEXT" '{print t}' doc > doc.tmp && mv doc.tmp doc"#),
    .init(
      name: "awk and mv of a plain name", program: "awk",
      save: #"awk -v t="$TEXT" '{print t}' doc > out && mv out doc"#),
    .init(
      name: "mktemp and mv", program: nil,
      save: #"f=$(mktemp ./tmp.XXXXXXXX); printf '%s\n' "$TEXT" > $f; mv $f doc"#),
  ]

  private static let languages: [Scenario] = [
    .init(
      name: "GLib g_file_replace", program: "gi",
      save:
        #"/usr/bin/python3 -c "import gi; from gi.repository import Gio; Gio.File.new_for_path('doc').replace_contents(b'$TEXT\n', None, False, Gio.FileCreateFlags.NONE, None)""#
    ),
    .init(
      name: "GLib g_file_replace with a backup", program: "gi",
      save:
        #"/usr/bin/python3 -c "import gi; from gi.repository import Gio; Gio.File.new_for_path('doc').replace_contents(b'$TEXT\n', None, True, Gio.FileCreateFlags.NONE, None)""#,
      backup: "doc~"),
    .init(
      name: "GLib g_file_set_contents", program: "gi",
      save:
        #"/usr/bin/python3 -c "import gi; from gi.repository import GLib; GLib.file_set_contents('doc', b'$TEXT\n')""#),
  ]

  private static let dances: [Scenario] = danceNames.map {
    .init(name: "dance \($0)", program: nil, save: #""$DANCE" \#($0) doc "$TEXT""#)
  }

  static let danceNames = [
    "atomic", "fixed_name", "plain_name", "replaced_while_open", "in_place", "truncated", "mapped", "recreate",
    "unlink_rename", "unlink_link", "anonymous", "backup_create", "backup_create_unlink", "backup_rename",
    "backup_passing_name", "backup_original", "link_backup", "exchanged", "other_folder", "threads", "probe",
    "replaced_half_written",
  ]

  private static let editors: [Scenario] = [
    .init(name: "vim -es", program: "vim", save: #"vim -es -u NONE -c "%s/.*/$TEXT/" -c wq doc"#),
    .init(
      name: "vim -es with a backup", program: "vim",
      save: #"vim -es -u NONE --cmd 'set backup' -c "%s/.*/$TEXT/" -c wq doc"#,
      backup: "doc~"),
    .init(
      name: "vim -es backupcopy=no", program: "vim",
      save: #"vim -es -u NONE --cmd 'set backupcopy=no' -c "%s/.*/$TEXT/" -c wq doc"#),
    .init(
      name: "vim -es backupcopy=yes", program: "vim",
      save: #"vim -es -u NONE --cmd 'set backup backupcopy=yes' -c "%s/.*/$TEXT/" -c wq doc"#, backup: "doc~"),
    .init(
      name: "vim -es nowritebackup", program: "vim",
      save: #"vim -es -u NONE --cmd 'set nowritebackup' -c "%s/.*/$TEXT/" -c wq doc"#),
    .init(name: "nvim --headless", program: "nvim", save: #"nvim --headless -u NONE -c "%s/.*/$TEXT/" -c wq doc"#),
    .init(
      name: "emacs --batch", program: "emacs",
      save: #"emacs --batch -Q doc --eval "(progn (erase-buffer) (insert \"$TEXT\n\") (save-buffer))" 2>/dev/null"#,
      backup: "doc~"),
    .init(
      name: "emacs --batch by copying", program: "emacs",
      save:
        #"emacs --batch -Q --eval '(setq backup-by-copying t)' doc --eval "(progn (erase-buffer) (insert \"$TEXT\n\") (save-buffer))" 2>/dev/null"#,
      backup: "doc~"),
    .init(
      name: "emacs --batch file-precious-flag", program: "emacs",
      save:
        #"emacs --batch -Q --eval '(setq file-precious-flag t)' doc --eval "(progn (erase-buffer) (insert \"$TEXT\n\") (save-buffer))" 2>/dev/null"#
    ),
    .init(
      name: "emacs --batch numbered backups", program: "emacs",
      save:
        #"emacs --batch -Q --eval '(setq version-control t)' doc --eval "(progn (erase-buffer) (insert \"$TEXT\n\") (save-buffer))" 2>/dev/null"#
    ),
  ]

  private static let interactive: [Scenario] = [
    .init(
      name: "vim", program: "vim",
      keys: ["vim -u NONE -N doc", ":%d\r", "ione\\x1b", ":w\r", ":%d\r", "itwo\\x1b", ":w\r", ":q\r"]),
    .init(
      name: "vim with swap file and backup", program: "vim",
      keys: [
        "vim -u NONE -N --cmd 'set backup' doc", ":%d\r", "ione\\x1b", ":w\r", ":%d\r", "itwo\\x1b", ":w\r", ":q\r",
      ]),
    .init(
      name: "vim with undo file", program: "vim",
      keys: [
        "vim -u NONE -N --cmd 'set undofile' doc", ":%d\r", "ione\\x1b", ":w\r", ":%d\r", "itwo\\x1b", ":w\r", ":q\r",
      ]),
    .init(
      name: "vim backupcopy=no", program: "vim",
      keys: [
        "vim -u NONE -N --cmd 'set backupcopy=no' doc", ":%d\r", "ione\\x1b", ":w\r", ":%d\r", "itwo\\x1b", ":w\r",
        ":q\r",
      ]),
    .init(
      name: "neovim", program: "nvim",
      keys: ["nvim -u NONE doc", ":%d\r", "ione\\x1b", ":w\r", ":%d\r", "itwo\\x1b", ":w\r", ":q\r"]),
    .init(
      name: "emacs", program: "emacs",
      keys: [
        "emacs -nw -Q doc", "\\x18h", "\\x17one\r", "\\x18\\x13", "\\x18h", "\\x17two\r", "\\x18\\x13", "\\x18\\x03",
      ],
      backup: "doc~"),
    .init(
      name: "nano", program: "nano",
      keys: ["nano -I doc", "\\x0b", "one", "\\x13", "\\x01\\x0b", "two", "\\x13", "\\x18"]),
    .init(
      name: "nano --backup", program: "nano",
      keys: ["nano -I -B doc", "\\x0b", "one", "\\x13", "\\x01\\x0b", "two", "\\x13", "\\x18"], backup: "doc~"),
    .init(
      name: "joe", program: "joe",
      keys: ["joe doc", "\\x19", "one\r", "\\x0bd", "\r", "\\x0bu\\x19", "two\r", "\\x0bd", "\r", "\\x0bq"]),
    .init(
      name: "joe -break_hardlinks", program: "joe",
      keys: [
        "joe -break_hardlinks doc", "\\x19", "one\r", "\\x0bd", "\r", "\\x0bu\\x19", "two\r", "\\x0bd", "\r", "\\x0bq",
      ]),
    .init(
      name: "micro", program: "micro",
      keys: ["micro -backup false doc", "\\x01", "one\r", "\\x13", "\\x01", "two\r", "\\x13", "\\x11"]),
    .init(
      name: "mg", program: "mg",
      keys: ["mg -n doc", "\\x0b", "one", "\\x18\\x13", "\\x01\\x0b", "two", "\\x18\\x13", "\\x18\\x03"]),
    .init(
      name: "mg with a backup", program: "mg",
      keys: ["mg doc", "\\x0b", "one", "\\x18\\x13", "\\x01\\x0b", "two", "\\x18\\x13", "\\x18\\x03"], backup: "doc~"),
    .init(
      name: "jed", program: "jed",
      keys: ["jed -n doc", "\\x0b", "one", "\\x18\\x13", "\\x01\\x0b", "two", "\\x18\\x13", "\\x18\\x03"]),
    .init(
      name: "ne", program: "ne",
      keys: ["ne doc", "\\x19", "one", "\\x13", "\\x01", "\\x19", "two", "\\x13", "\\x11"]),
    .init(
      name: "kakoune", program: "kak",
      keys: ["kak -n doc", "%d", "ione\\x1b", ":w\r", "%d", "itwo\\x1b", ":w\r", ":q\r"]),
    .init(
      name: "kakoune writemethod replace", program: "kak",
      keys: [
        "kak -n -e 'set-option global writemethod replace' doc", "%d", "ione\\x1b", ":w\r", "%d", "itwo\\x1b", ":w\r",
        ":q\r",
      ]),
  ]
}

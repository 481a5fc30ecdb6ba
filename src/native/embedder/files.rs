//! Where the files of a model come from: a folder, or the program's memory.
//!
//! What the files contain is not known here.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The files of a model, named as in a Hugging Face folder: `config.json`,
/// `model.safetensors`, `1_Pooling/config.json` and so on.
#[derive(Clone, Debug)]
pub enum ModelFiles<'a> {
    /// A folder.
    Folder(PathBuf),
    /// Names and contents.
    Bytes(&'a [(&'a str, &'a [u8])]),
}

impl From<&Path> for ModelFiles<'_> {
    fn from(path: &Path) -> Self {
        ModelFiles::Folder(path.into())
    }
}

impl From<&PathBuf> for ModelFiles<'_> {
    fn from(path: &PathBuf) -> Self {
        ModelFiles::Folder(path.clone())
    }
}

impl From<&String> for ModelFiles<'_> {
    fn from(path: &String) -> Self {
        ModelFiles::Folder(path.into())
    }
}

impl From<&str> for ModelFiles<'_> {
    fn from(path: &str) -> Self {
        ModelFiles::Folder(path.into())
    }
}

impl<'a> From<&'a [(&'a str, &'a [u8])]> for ModelFiles<'a> {
    fn from(files: &'a [(&'a str, &'a [u8])]) -> Self {
        ModelFiles::Bytes(files)
    }
}

/// The most bytes of a JSON file or a vocabulary.
const MAX_TEXT: u64 = 64 << 20;

impl<'a> ModelFiles<'a> {
    /// A file's text; `None` where there is no such file.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let text = self.bytes(name)?.map(String::from_utf8).transpose();
        text.map_err(|_| refuse(name, "is not UTF-8"))
    }

    /// The bytes of a file of JSON or of words; `None` where there is no such file.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut blob) = self.open(name)? else {
            return Ok(None);
        };
        if blob.len() > MAX_TEXT {
            return Err(refuse(name, "has more than 64 MiB"));
        }
        let mut bytes = vec![0; usize::try_from(blob.len()).unwrap_or(0)];
        blob.read(0, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// A file to read parts of; `None` where there is no such file.
    pub(super) fn open(&self, name: &str) -> Result<Option<Blob<'a>>, Error> {
        let content = match self {
            ModelFiles::Bytes(files) => {
                let file = files.iter().find(|(known, _)| *known == name);
                let Some((_, bytes)) = file else {
                    return Ok(None);
                };
                Content::Bytes(bytes)
            }
            ModelFiles::Folder(folder) => match open_file(&folder.join(name)) {
                Ok((file, len)) => Content::File(file, len),
                Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => {
                    return Ok(None);
                }
                Err(error) => {
                    let path = folder.join(name);
                    return Err(refuse(&path.to_string_lossy(), &error.to_string()));
                }
            },
        };
        let name = name.to_string();
        Ok(Some(Blob { name, content }))
    }
}

fn open_file(path: &Path) -> std::io::Result<(File, u64)> {
    let metadata = std::fs::metadata(path)?;
    // Opening a pipe would wait for whoever writes to it.
    if !metadata.is_file() {
        let problem = "is a folder or a device, not a file";
        return Err(std::io::Error::new(ErrorKind::InvalidInput, problem));
    }
    Ok((File::open(path)?, metadata.len()))
}

/// One file.
#[derive(Debug)]
pub(super) struct Blob<'a> {
    name: String,
    content: Content<'a>,
}

#[derive(Debug)]
enum Content<'a> {
    File(File, u64),
    Bytes(&'a [u8]),
}

impl Blob<'_> {
    pub(super) fn len(&self) -> u64 {
        match &self.content {
            Content::File(_, len) => *len,
            Content::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `into` with the file's bytes from `at` on.
    pub(super) fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let result = match &mut self.content {
            Content::File(file, _) => file
                .seek(SeekFrom::Start(at))
                .and_then(|_| file.read_exact(into)),
            Content::Bytes(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let rest = bytes.get(at..).unwrap_or_default();
                (&mut &*rest).read_exact(into)
            }
        };
        result.map_err(|error| refuse(&self.name, &error.to_string()))
    }
}

/// The error of a file with this problem.
pub(super) fn refuse(name: &str, problem: &str) -> Error {
    Error::InvalidInput([name, ": ", problem].concat())
}
